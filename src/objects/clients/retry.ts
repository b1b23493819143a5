/**
 * Which failed calls to a Durable Object are retried, and when. The properties of an error are the platform's:
 * `retryable` (the connection was lost), `overloaded` (the object has too many requests), `durableObjectReset` (the instance
 * ended), `remote` (a method threw it). Measured on workerd: after `ctx.abort()` every pending and later call of a stub
 * fails with `durableObjectReset: true` and without `retryable`; where the runtime ends all objects at once, calls fail with
 * a plain Error that has none of these; an exception that a method throws has only `remote: true`.
 */
import { OBJECT_RETRY_LIMITS_MS } from "../../limits.ts";
import { isOfNewerRows } from "../../newer-rows.ts";

/**
 * `reset`: a later call reaches another instance. `overloaded`: more calls make it worse. `outdated`: during a deploy, the
 * object is of another version and does not have the method. `full`: the disk has no room for its rows, as long as nobody
 * frees some. `newer`: its rows are those of later code, until that is deployed again. `bug`: it fails each time.
 */
export type ObjectFailure = "reset" | "overloaded" | "outdated" | "full" | "newer" | "bug";

/** What the runtime says of a method that the object does not have. */
const NO_METHOD = /^The RPC receiver does not implement the method /;

/**
 * What SQLite says when a write finds no room, measured on workerd with a full disk: calls fail with "database or disk is full:
 * SQLITE_FULL", and with all other properties of an instance that ended. Each next instance ends at its first row, so a retry
 * costs seconds and changes nothing.
 */
const NO_ROOM = /\bSQLITE_FULL\b/;

/** Classifies what a call to an object was rejected with. */
export function objectFailure(error: unknown): ObjectFailure {
  if (isSet(error, "overloaded")) return "overloaded";
  if (error instanceof Error && NO_ROOM.test(error.message)) return "full";
  // Before the next: where an object does not begin, the runtime says of each call what it says of a restart.
  if (isOfNewerRows(error)) return "newer";
  if (isSet(error, "retryable") || isSet(error, "durableObjectReset")) return "reset";
  if (error instanceof Error && NO_METHOD.test(error.message)) return "outdated";
  return isPlatforms(error) ? "reset" : "bug";
}

/** Whether neither a method of the object threw it nor our own code, whose bugs are TypeErrors and their like. */
function isPlatforms(error: unknown): boolean {
  return error instanceof Error && error.name === "Error" && !isSet(error, "remote");
}

function isSet(error: unknown, name: "retryable" | "overloaded" | "durableObjectReset" | "remote"): boolean {
  return typeof error === "object" && error !== null && Reflect.get(error, name) === true;
}

/** Full jitter: a delay from 0 to below the limit, so that callers that failed together do not come back together. */
export function jittered(limitMs: number, random: () => number): number {
  return Math.floor(random() * limitMs);
}

export type RetryDeps = {
  wait: (ms: number) => Promise<void>;
  /** Uniform in [0, 1). */
  random: () => number;
};

/** Makes an idempotent call until it succeeds, fails otherwise than by a reset, or has used up its retries. */
export async function withRetry<T>(call: () => Promise<T>, { wait, random }: RetryDeps): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await call();
    } catch (error) {
      const limitMs = OBJECT_RETRY_LIMITS_MS[failures];
      if (limitMs === undefined || objectFailure(error) !== "reset") throw error;
      await wait(jittered(limitMs, random));
    }
  }
}
