/** Reads the delay in an upstream's `Retry-After`. */
import { EXPIRES_S_MAX } from "../limits.ts";

/** No call waits longer than the longest run lives, so a larger hint has the same effect. */
const HINT_MS_MAX = EXPIRES_S_MAX * 1_000;

const DECIMAL = /^\d{1,15}(\.\d{1,15})?$/;

/**
 * The upstream's hint in whole ms from now, rounded up; null when it gives none that can be read. `retry-after-ms` goes
 * before `retry-after`, which is seconds (a fraction is allowed) or an HTTP date; a date in the past means now.
 */
export function readRetryAfterMs(headers: Headers, nowMs: number): number | null {
  const ms = headers.get("retry-after-ms")?.trim();
  if (ms !== undefined && DECIMAL.test(ms)) return bounded(Number(ms));
  const value = headers.get("retry-after")?.trim();
  if (value === undefined) return null;
  if (DECIMAL.test(value)) return bounded(Number(value) * 1_000);
  // Date.parse also reads "-5" and "1e3" as years; an HTTP date starts with the name of a day.
  const dateMs = /^[A-Za-z]{3,9},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(dateMs) ? null : bounded(dateMs - nowMs);
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), HINT_MS_MAX);
}
