/** The route with which a run's code calls its tools. */
import { TOOL_CALL_BYTES_MAX } from "../../limits.ts";
import { dialectErrorBody } from "../dialects/dialects.ts";
import { toolCallBody, toolCallReply } from "../tools.ts";
import { json, jsonBody } from "./parts.ts";
import { CLIENTS, family } from "./record.ts";

export const tools = family("Tools", {
  "POST /tool_call": {
    auth: CLIENTS,
    guide: "docs/tools.md",
    summary: "Calls a tool that the operator registered when the run was opened",
    description:
      "The gateway posts `tool_name` and `input` to the tool's address and returns the field `result` of its JSON answer, " +
      "or the whole answer. At most `max_parallel` tool calls of a run are in flight. Tool calls cost nothing.",
    bound: TOOL_CALL_BYTES_MAX,
    request: jsonBody(toolCallBody),
    replies: {
      200: json(toolCallReply, "The tool's result"),
      408: json(dialectErrorBody, "The tool did not answer in time"),
    },
    errors: json(dialectErrorBody, "The call was refused or failed; `error` has the reason"),
  },
});
