/** The route by which a run's code calls its tools. */
import type { RouteConfig } from "@hono/zod-openapi";
import { dialectErrorBody } from "../contract/dialects.ts";
import { toolCallBody, toolCallReply } from "../contract/tools.ts";
import { guarded, json, jsonBody } from "./parts.ts";

const call = guarded({
  method: "post",
  path: "/tool_call",
  summary: "Calls a tool that was registered when the run was opened",
  description:
    "The gateway posts `tool_name` and `input` to the tool's address and gives back the `result` of its JSON answer, or " +
    "all of it. At most as many calls are in flight as the run is wide. They cost nothing and count as no LLM call.",
  request: jsonBody(toolCallBody),
  responses: { 200: json(toolCallReply, "The tool's result") },
});

export const tools: RouteConfig[] = [
  {
    ...call,
    responses: {
      ...call.responses,
      408: json(dialectErrorBody, "The tool did not answer in time"),
      default: json(dialectErrorBody, "Refused or failed; `error` says why"),
    },
  },
];
