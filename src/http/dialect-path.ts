/** Paths that other systems' clients call, and how they are named where the id in them may be a run token. */
import { TOKEN_PREFIX, WORKER_TOKEN_PREFIX } from "./auth/token-prefix.ts";
import { dialectErrorBody } from "../contract/dialects/dialects.ts";
import { ROUTES } from "../contract/routes/table.ts";

/** The routes whose refusals have the dialects' form: the table names its schema by the function that builds it. */
const SPOKEN: ReadonlySet<string> = new Set(
  ROUTES.filter(({ errors }) => errors?.content?.["application/json"]?.schema === dialectErrorBody).map(
    ({ path }) => path,
  ),
);

/** Whether an answer on this path speaks a dialect, in which an error is `{"error": "message"}`. */
export function isDialectPath(path: string): boolean {
  return SPOKEN.has(path) || path.startsWith("/rollout/");
}

/** A token in a path: also where a client has written the path in a way that no route has. */
const TOKEN = new RegExp(`(?:${TOKEN_PREFIX}|${WORKER_TOKEN_PREFIX})[\\w.-]+`, "g");

/** A path as it may be stored and shown: the id of a rollout may be a token. */
export function withoutToken(path: string): string {
  return path.replace(/^\/rollout\/[^/]+/, "/rollout/:id").replace(TOKEN, ":id");
}
