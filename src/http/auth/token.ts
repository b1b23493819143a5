/**
 * Run tokens: a signed statement of run, depth and expiry that any isolate can check without storage. The run object
 * has the last word; a token that verifies here may still belong to a run that has ended.
 */
import { sign, verify } from "hono/jwt";
import type { Reason } from "../../errors.ts";
import { DEPTH_MAX, NAME_CHARS_MAX, TOKEN_CACHE_MAX } from "../../limits.ts";
import { TOKEN_PREFIX } from "./token-prefix.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** What a token states. */
export type RunClaims = {
  runId: string;
  depth: number;
  expiresAtMs: number;
  /** Whether the run records its answers, so that calls of other runs need not be looked at. */
  records?: true;
  /** The client's trace that the run's spans are in; absent = in one of their own. */
  traceId?: string;
};

/** Far above what `signRunToken` makes: longer texts are refused before any work. */
const TOKEN_CHARS_MAX = 2_048;

/** A token that names its run; expiry is kept in whole seconds, rounded up. */
export async function signRunToken(
  key: CryptoKey,
  { runId, depth, expiresAtMs, records, traceId }: RunClaims,
): Promise<string> {
  const plain = { sub: runId, depth, exp: Math.ceil(expiresAtMs / 1000) };
  const traced = traceId === undefined ? {} : { trc: traceId };
  const claims = { ...plain, ...(records === true ? { rec: true } : {}), ...traced };
  return TOKEN_PREFIX + (await sign(claims, key, "HS256"));
}

/** The claims of a valid token, or why it is refused. */
export type Verified = { ok: true; claims: RunClaims } | { ok: false; reason: Reason };

/** Signatures known to be good, per key. Only tokens that verified enter, so strangers cannot fill it. */
const known = new WeakMap<CryptoKey, BoundedMap<string, RunClaims>>();

/** Checks that one of the keys signed, and the expiry; a signature is checked once per isolate, the expiry each time. */
export async function verifyRunToken(keys: readonly CryptoKey[], token: string, nowMs: number): Promise<Verified> {
  for (const key of keys) {
    const claims = known.get(key)?.get(token) ?? (await checkSignature(key, token));
    if (claims === null) continue;
    if (claims.expiresAtMs <= nowMs) {
      return refused(`the run token expired at ${new Date(claims.expiresAtMs).toISOString()}`);
    }
    remember(key, token, claims);
    return { ok: true, claims };
  }
  return refused("this gateway did not sign the run token: it is cut off, or another gateway's");
}

async function checkSignature(key: CryptoKey, token: string): Promise<RunClaims | null> {
  if (!token.startsWith(TOKEN_PREFIX) || token.length > TOKEN_CHARS_MAX) return null;
  try {
    // The algorithm is pinned and the times are left to the caller, whose clock is an argument.
    const options = { alg: "HS256", exp: false, nbf: false, iat: false } as const;
    return claimsOf(await verify(token.slice(TOKEN_PREFIX.length), key, options));
  } catch {
    // `verify` throws for each of the many ways in which a text is no token; a stranger learns none of them.
    return null;
  }
}

function claimsOf({ sub, depth, exp, rec, trc }: Record<string, unknown>): RunClaims | null {
  if (typeof sub !== "string" || sub === "" || sub.length > NAME_CHARS_MAX) return null;
  if (typeof depth !== "number" || !Number.isInteger(depth) || depth < 0 || depth > DEPTH_MAX) return null;
  if (typeof exp !== "number" || !Number.isSafeInteger(exp)) return null;
  const traced = typeof trc === "string" ? { traceId: trc } : {};
  return { runId: sub, depth, expiresAtMs: exp * 1000, ...(rec === true ? { records: true } : {}), ...traced };
}

function remember(key: CryptoKey, token: string, claims: RunClaims): void {
  const tokens = known.get(key) ?? new BoundedMap<string, RunClaims>(TOKEN_CACHE_MAX);
  known.set(key, tokens);
  if (!tokens.has(token)) tokens.set(token, claims);
}

function refused(message: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_api_key", message } };
}
