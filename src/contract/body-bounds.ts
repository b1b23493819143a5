/** How large the body of each route may be: the one table that handlers read and `GET /limits` shows. */
import {
  BATCH_BODY_BYTES_MAX,
  BODY_BYTES_MAX,
  CALL_BODY_BYTES_MAX,
  CASSETTE_BYTES_MAX,
  CONTEXT_BYTES_MAX,
  EMPTY_BODY_BYTES_MAX,
  GRAPH_CHANGE_BYTES_MAX,
  FILE_FORM_BYTES_MAX,
  GRAPH_BODY_BYTES_MAX,
  LOG_BODY_BYTES_MAX,
  PART_FORM_BYTES_MAX,
  PATCH_BODY_BYTES_MAX,
  RUN_BODY_BYTES_MAX,
  TOOL_CALL_BYTES_MAX,
  UPLOAD_COMPLETE_BYTES_MAX,
} from "../limits.ts";

/** Routes that read no body: what is sent there anyway is bounded, and dropped. */
const UNREAD = {
  "POST /groups/:id/confirm": EMPTY_BODY_BYTES_MAX,
  "POST /groups/:id/retry": EMPTY_BODY_BYTES_MAX,
  "POST /runs/:id/close": EMPTY_BODY_BYTES_MAX,
  "POST /runs/:id/stats/reset": EMPTY_BODY_BYTES_MAX,
  "POST /runs/:id/flush": EMPTY_BODY_BYTES_MAX,
  "POST /runs/:id/worker-token": EMPTY_BODY_BYTES_MAX,
  "POST /runs/:id/turn": EMPTY_BODY_BYTES_MAX,
  "POST /dag/:id/retry": EMPTY_BODY_BYTES_MAX,
  "POST /upstreams/:name/resume": EMPTY_BODY_BYTES_MAX,
  "POST /v1/responses/:id/cancel": EMPTY_BODY_BYTES_MAX,
  "POST /v1/uploads/:id/cancel": EMPTY_BODY_BYTES_MAX,
  "POST /v1/batches/:id/cancel": EMPTY_BODY_BYTES_MAX,
} as const;

/** Bytes by method and path, as the route is mounted. A batch is read piece by piece, and so may be the largest. */
export const BODY_BYTES = {
  ...UNREAD,
  "POST /runs": RUN_BODY_BYTES_MAX,
  "PATCH /runs/:id": PATCH_BODY_BYTES_MAX,
  "POST /runs/:id/claim": PATCH_BODY_BYTES_MAX,
  "POST /runs/:id/heartbeat": PATCH_BODY_BYTES_MAX,
  "POST /runs/:id/complete": CALL_BODY_BYTES_MAX,
  "POST /runs/:id/log": LOG_BODY_BYTES_MAX,
  "POST /log": LOG_BODY_BYTES_MAX,
  "POST /query": CALL_BODY_BYTES_MAX,
  "POST /batch": BODY_BYTES_MAX,
  "POST /mcp": BODY_BYTES_MAX,
  "POST /contexts": CONTEXT_BYTES_MAX,
  "PUT /cassettes/:tape": CASSETTE_BYTES_MAX,
  "POST /dag": GRAPH_BODY_BYTES_MAX,
  "POST /dag/validate": GRAPH_BODY_BYTES_MAX,
  "PATCH /dag/:id": GRAPH_CHANGE_BYTES_MAX,
  "POST /plan": CALL_BODY_BYTES_MAX,
  "POST /llm_query": CALL_BODY_BYTES_MAX,
  "POST /llm_query_batch": BODY_BYTES_MAX,
  "POST /llm_query_batched": BODY_BYTES_MAX,
  "POST /rlm_query": CALL_BODY_BYTES_MAX,
  "POST /rlm_query_batched": BODY_BYTES_MAX,
  "POST /tool_call": TOOL_CALL_BYTES_MAX,
  "POST /rollout/:id/llm_query": CALL_BODY_BYTES_MAX,
  "POST /rollout/:id/llm_query_batch": BODY_BYTES_MAX,
  "POST /rollout/:id/llm_query_batched": BODY_BYTES_MAX,
  "POST /rollout/:id/rlm_query": CALL_BODY_BYTES_MAX,
  "POST /rollout/:id/rlm_query_batched": BODY_BYTES_MAX,
  "POST /rollout/:id/tool_call": TOOL_CALL_BYTES_MAX,
  // Parsed whole, whatever tool it calls.
  "POST /rollout/:id/v1/rlm/tools": CALL_BODY_BYTES_MAX,
  "POST /v1/chat/completions": BODY_BYTES_MAX,
  "POST /v1/completions": BODY_BYTES_MAX,
  "POST /v1/embeddings": BODY_BYTES_MAX,
  "POST /v1/responses": BODY_BYTES_MAX,
  "POST /v1/messages": BODY_BYTES_MAX,
  "POST /v1/messages/count_tokens": BODY_BYTES_MAX,
  "POST /v1/files": FILE_FORM_BYTES_MAX,
  "POST /v1/uploads": BATCH_BODY_BYTES_MAX,
  "POST /v1/uploads/:id/parts": PART_FORM_BYTES_MAX,
  "POST /v1/uploads/:id/complete": UPLOAD_COMPLETE_BYTES_MAX,
  "POST /v1/batches": BATCH_BODY_BYTES_MAX,
} as const satisfies Record<string, number>;

const BOUNDS: ReadonlyMap<string, number> = new Map(Object.entries(BODY_BYTES));

/** The bound of a route; null for one that takes no body. `path` is the pattern under which it is mounted. */
export function bodyBound(method: string, path: string): number | null {
  // A parameter may say what it matches: `/dag/:id{…}`, which is not `/dag/validate`.
  return BOUNDS.get(`${method} ${path.replace(/\{.*\}$/, "")}`) ?? null;
}

/** Whether a route reads no body. */
export function readsNoBody(method: string, path: string): boolean {
  return Object.hasOwn(UNREAD, `${method} ${path}`);
}
