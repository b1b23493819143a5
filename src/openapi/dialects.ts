/** Routes whose names and formats other systems' clients already use. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { batchReply } from "../contract/batch.ts";
import { dialectToolCall, dialectToolReply } from "../contract/dialects/tools.ts";
import { dialectBatch, dialectErrorBody, dialectQuery } from "../contract/dialects/dialects.ts";
import { queryReply } from "../contract/query.ts";
import { toolCallBody, toolCallReply } from "../contract/tools.ts";
import { guarded, json, jsonBody } from "./parts.ts";

const rollout = {
  name: "id",
  in: "path" as const,
  required: true,
  description: "The run's id, or its token. A token is also the credential; no header is needed then",
  schema: { type: "string" as const },
};

const errors = {
  name: "errors",
  in: "query" as const,
  required: false,
  description:
    "`status`: a failed call returns an HTTP error status. `ok`: it returns 200 with `error`. Default: what the client of this route expects",
  schema: { type: "string" as const, enum: ["status", "ok"] },
};

const refused = json(dialectErrorBody, "The request was refused or failed; `error` has the reason");

/** A route, and the same route below `/rollout/{id}`. */
function bothWays(name: string, route: Pick<RouteConfig, "summary" | "request" | "responses">): RouteConfig[] {
  return [
    spoken({ method: "post", path: `/${name}`, parameters: [errors], ...route }),
    spoken({ method: "post", path: `/rollout/{id}/${name}`, parameters: [rollout, errors], ...route }),
  ];
}

function spoken(route: Parameters<typeof guarded>[0]): RouteConfig {
  const described = guarded(route);
  return { ...described, responses: { ...described.responses, default: refused } };
}

const single = (summary: string) => ({
  summary,
  request: jsonBody(dialectQuery),
  responses: {
    200: json(
      queryReply.or(dialectErrorBody),
      "The answer; or the error, if the client of this route expects errors with status 200",
    ),
  },
});

const list = (summary: string) => ({
  summary,
  request: jsonBody(dialectBatch),
  responses: {
    200: json(
      batchReply.or(dialectErrorBody),
      "One result per prompt in input order; or the error, if the client of this route expects errors with status 200",
    ),
  },
});

export const dialects: RouteConfig[] = [
  ...bothWays("llm_query", single("Makes one LLM call (shihwesley/rlm-sandbox, alexzhang13/rlm)")),
  ...bothWays("rlm_query", single("Makes one LLM call (alexzhang13/rlm); it does not recurse")),
  ...bothWays("llm_query_batch", list("Makes an ordered list of LLM calls; a failed one is `[error] message`")),
  ...bothWays(
    "llm_query_batched",
    list("Makes an ordered list of LLM calls (alexzhang13/rlm); a failed one is `Error: message`"),
  ),
  ...bothWays("rlm_query_batched", list("The same as `/llm_query_batched`; it does not recurse")),
  spoken({
    method: "post",
    path: "/rollout/{id}/tool_call",
    summary: "The same as `/tool_call`, for clients that can only be given a URL",
    parameters: [rollout],
    request: jsonBody(toolCallBody),
    responses: { 200: json(toolCallReply, "The tool's result") },
  }),
  spoken({
    method: "post",
    path: "/rollout/{id}/v1/rlm/tools",
    summary: "Calls a tool of verifiers' RLMEnv: `llm_batch`, or a tool of the run",
    parameters: [rollout],
    request: jsonBody(dialectToolCall),
    responses: { 200: json(dialectToolReply, "The tool's result") },
  }),
];
