/** The route with which a run's code calls its tools. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { dialectErrorBody } from "../contract/dialects/dialects.ts";
import { toolCallBody, toolCallReply } from "../contract/tools.ts";
import { guarded, json, jsonBody } from "./parts.ts";

const call = guarded({
  method: "post",
  path: "/tool_call",
  summary: "Calls a tool that the operator registered when the run was opened",
  description:
    "The gateway posts `tool_name` and `input` to the tool's address and returns the field `result` of its JSON answer, " +
    "or the whole answer. At most `max_parallel` tool calls of a run are in flight. Tool calls cost nothing.",
  request: jsonBody(toolCallBody),
  responses: { 200: json(toolCallReply, "The tool's result") },
});

export const tools: RouteConfig[] = [
  {
    ...call,
    responses: {
      ...call.responses,
      408: json(dialectErrorBody, "The tool did not answer in time"),
      default: json(dialectErrorBody, "The call was refused or failed; `error` has the reason"),
    },
  },
];
