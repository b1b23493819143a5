/** Routes whose names and formats other systems' clients already use. */
import { BODY_BYTES_MAX, CALL_BODY_BYTES_MAX, TOOL_CALL_BYTES_MAX } from "../../limits.ts";
import { batchReply } from "../batch.ts";
import { dialectBatch, dialectErrorBody, dialectQuery } from "../dialects/dialects.ts";
import { dialectToolCall, dialectToolReply } from "../dialects/tools.ts";
import { queryReply } from "../query.ts";
import { toolCallBody, toolCallReply } from "../tools.ts";
import { json, jsonBody } from "./parts.ts";
import { CLIENTS, family, type Parameter } from "./record.ts";

const rollout: Parameter = {
  name: "id",
  in: "path",
  required: true,
  description: "The run's id, or its token. A token is also the credential; no header is needed then",
  schema: { type: "string" },
};

const errors: Parameter = {
  name: "errors",
  in: "query",
  required: false,
  description:
    "`status`: a failed call returns an HTTP error status. `ok`: it returns 200 with `error`. Default: what the client of this route expects",
  schema: { type: "string", enum: ["status", "ok"] },
};

const common = {
  auth: CLIENTS,
  guide: "docs/dialects.md" as const,
  errors: json(dialectErrorBody, "The request was refused or failed; `error` has the reason"),
};

const single = (summary: string) => ({
  ...common,
  parameters: [errors],
  summary,
  bound: CALL_BODY_BYTES_MAX,
  request: jsonBody(dialectQuery),
  replies: {
    200: json(
      () => queryReply().or(dialectErrorBody()),
      "The answer; or the error, if the client of this route expects errors with status 200",
    ),
  },
});

const list = (summary: string) => ({
  ...common,
  parameters: [errors],
  summary,
  bound: BODY_BYTES_MAX,
  request: jsonBody(dialectBatch),
  replies: {
    200: json(
      () => batchReply().or(dialectErrorBody()),
      "One result per prompt in input order; or the error, if the client of this route expects errors with status 200",
    ),
  },
});

/** The same route below `/rollout/:id`. */
const inRollout = <Record extends { parameters: Parameter[] }>(record: Record): Record => ({
  ...record,
  parameters: [rollout, ...record.parameters],
});

const llmQuery = single("Makes one LLM call (shihwesley/rlm-sandbox, alexzhang13/rlm)");
const rlmQuery = single("Makes one LLM call (alexzhang13/rlm); it does not recurse");
const llmQueryBatch = list("Makes an ordered list of LLM calls; a failed one is `[error] message`");
const llmQueryBatched = list("Makes an ordered list of LLM calls (alexzhang13/rlm); a failed one is `Error: message`");
const rlmQueryBatched = list("The same as `/llm_query_batched`; it does not recurse");

export const dialects = family("Dialects", {
  "POST /llm_query": llmQuery,
  "POST /rollout/:id/llm_query": inRollout(llmQuery),
  "POST /rlm_query": rlmQuery,
  "POST /rollout/:id/rlm_query": inRollout(rlmQuery),
  "POST /llm_query_batch": llmQueryBatch,
  "POST /rollout/:id/llm_query_batch": inRollout(llmQueryBatch),
  "POST /llm_query_batched": llmQueryBatched,
  "POST /rollout/:id/llm_query_batched": inRollout(llmQueryBatched),
  "POST /rlm_query_batched": rlmQueryBatched,
  "POST /rollout/:id/rlm_query_batched": inRollout(rlmQueryBatched),
  "POST /rollout/:id/tool_call": {
    ...common,
    summary: "The same as `/tool_call`, for clients that can only be given a URL",
    parameters: [rollout],
    bound: TOOL_CALL_BYTES_MAX,
    request: jsonBody(toolCallBody),
    replies: { 200: json(toolCallReply, "The tool's result") },
  },
  "POST /rollout/:id/v1/rlm/tools": {
    ...common,
    summary: "Calls a tool of verifiers' RLMEnv: `llm_batch`, or a tool of the run",
    parameters: [rollout],
    // Parsed whole, whatever tool it calls.
    bound: CALL_BODY_BYTES_MAX,
    request: jsonBody(dialectToolCall),
    replies: { 200: json(dialectToolReply, "The tool's result") },
  },
});
