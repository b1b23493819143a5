/** Paths that other systems' clients call, and how they are named where the id in them may be a run token. */

const NAMES = "(?:llm_query(?:_batch|_batched)?|rlm_query(?:_batched)?|tool_call)";
const DIALECT = new RegExp(`^/(?:${NAMES}$|rollout/)`);

/** Whether an answer on this path speaks a dialect, in which an error is `{"error": "message"}`. */
export function isDialectPath(path: string): boolean {
  return DIALECT.test(path);
}

/** A path as it may be stored and shown: the id of a rollout may be a token. */
export function withoutToken(path: string): string {
  return path.replace(/^\/rollout\/[^/]+/, "/rollout/:id");
}
