/** Routes under the names that other systems' clients call. */
import type { RouteConfig } from "@hono/zod-openapi";
import { batchReply } from "../contract/batch.ts";
import { dialectToolCall, dialectToolReply } from "../contract/dialect-tools.ts";
import { dialectBatch, dialectErrorBody, dialectQuery } from "../contract/dialects.ts";
import { queryReply } from "../contract/query.ts";
import { toolCallBody, toolCallReply } from "../contract/tools.ts";
import { guarded, json, jsonBody } from "./parts.ts";

const rollout = {
  name: "id",
  in: "path" as const,
  required: true,
  description: "The run's id; or its token, which then is the credential and needs no header",
  schema: { type: "string" as const },
};

const errors = {
  name: "errors",
  in: "query" as const,
  required: false,
  description:
    "`status`: a failed call has an error's status; `ok`: it has 200 and `error`. Default as the client expects",
  schema: { type: "string" as const, enum: ["status", "ok"] },
};

const refused = json(dialectErrorBody, "Refused or failed; `error` says why");

/** A route, and the same below `/rollout/{id}`. */
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
  responses: { 200: json(queryReply.or(dialectErrorBody), "The answer; or, where the client expects it, the error") },
});

const list = (summary: string) => ({
  summary,
  request: jsonBody(dialectBatch),
  responses: { 200: json(batchReply.or(dialectErrorBody), "One result per prompt in input order; or the error") },
});

export const dialects: RouteConfig[] = [
  ...bothWays("llm_query", single("One call, of shihwesley/rlm-sandbox and alexzhang13/rlm")),
  ...bothWays("rlm_query", single("One call of alexzhang13/rlm; recursion is the caller's own, in a child run")),
  ...bothWays("llm_query_batch", list("An ordered list of calls; a failed one is `[error] m`")),
  ...bothWays("llm_query_batched", list("An ordered list of calls of alexzhang13/rlm; a failed one is `Error: m`")),
  ...bothWays("rlm_query_batched", list("The same under its recursive name")),
  spoken({
    method: "post",
    path: "/rollout/{id}/tool_call",
    summary: "`/tool_call`, for clients whose only setting is a URL",
    parameters: [rollout],
    request: jsonBody(toolCallBody),
    responses: { 200: json(toolCallReply, "The tool's result") },
  }),
  spoken({
    method: "post",
    path: "/rollout/{id}/v1/rlm/tools",
    summary: "A tool of verifiers' RLMEnv: `llm_batch`, or a tool of the run",
    parameters: [rollout],
    request: jsonBody(dialectToolCall),
    responses: { 200: json(dialectToolReply, "What it returned") },
  }),
];
