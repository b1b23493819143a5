/**
 * Tokens of pull workers: signed statements of one run, with which nothing but its items can be claimed, kept and completed.
 * They have a prefix and a claim of their own: whatever verifies run tokens, in this version or an earlier one, refuses them.
 */
import { sign, verify } from "hono/jwt";
import type { Reason } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { WORKER_TOKEN_PREFIX } from "./token-prefix.ts";

/** Far above what `signWorkerToken` makes. */
const TOKEN_CHARS_MAX = 2_048;

export type WorkerClaims = { runId: string; expiresAtMs: number };

/** A token for the pull workers of a run; its expiry is kept in whole seconds, rounded up. */
export async function signWorkerToken(key: CryptoKey, { runId, expiresAtMs }: WorkerClaims): Promise<string> {
  const claims = { pull: runId, exp: Math.ceil(expiresAtMs / 1000) };
  return WORKER_TOKEN_PREFIX + (await sign(claims, key, "HS256"));
}

/** The run of a token that one of the keys signed, or why it is refused. */
export async function verifyWorkerToken(
  keys: readonly CryptoKey[],
  token: string,
  nowMs: number,
): Promise<{ ok: true; runId: string } | { ok: false; reason: Reason }> {
  for (const key of keys) {
    const claims = await checkSignature(key, token);
    if (claims === null) continue;
    if (claims.expiresAtMs <= nowMs)
      return refused(`the worker token expired at ${new Date(claims.expiresAtMs).toISOString()}`);
    return { ok: true, runId: claims.runId };
  }
  return refused("this gateway did not sign the worker token");
}

async function checkSignature(key: CryptoKey, token: string): Promise<WorkerClaims | null> {
  if (!token.startsWith(WORKER_TOKEN_PREFIX) || token.length > TOKEN_CHARS_MAX) return null;
  try {
    const options = { alg: "HS256", exp: false, nbf: false, iat: false } as const;
    const { pull, exp } = await verify(token.slice(WORKER_TOKEN_PREFIX.length), key, options);
    if (typeof pull !== "string" || pull === "" || pull.length > NAME_CHARS_MAX) return null;
    if (typeof exp !== "number" || !Number.isSafeInteger(exp)) return null;
    return { runId: pull, expiresAtMs: exp * 1000 };
  } catch {
    // `verify` throws for each of the many ways in which a text is no token.
    return null;
  }
}

function refused(message: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_api_key", message } };
}
