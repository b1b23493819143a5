/** A request's Idempotency-Key, with the hash of the request: the same key must not be used for another request. */
import type { Context } from "hono";
import type { IdempotencyKey } from "../../objects/methods/types.ts";
import type { AppEnv } from "../context.ts";
import { mediaType } from "../../contract/body.ts";
import { parseIdempotencyKey } from "../../contract/groups.ts";
import { Refusal } from "../../errors.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { withoutToken } from "../dialect-path.ts";

/** @param body The request's body as it came. Null when the request has no key. */
export async function namedOf(c: Context<AppEnv>, body: Uint8Array): Promise<IdempotencyKey | null> {
  const key = parseIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) throw new Refusal(key.reason);
  if (key.value === null) return null;
  // The same bytes as text are a prompt, as JSON they are a request.
  const kind = mediaType(c.req.raw) === "text/plain" ? "text" : "json";
  return { key: key.value, hash: `${withoutToken(c.req.path)} ${kind} ${await sha256Hex(body)}` };
}
