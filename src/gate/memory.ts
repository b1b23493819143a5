/** What of a gate is stored, and when: a stop and a long Retry-After at once, figures seldom, because each write is a row. */
import { GATE_HOLD_STORE_MS, GATE_STORE_EVERY_MS, GATE_STORE_WIDTH_EVERY_MS } from "../limits.ts";
import type { StoredBuckets } from "./rates.ts";
import type { StoredStop } from "./stop.ts";
import type { StoredWidth } from "./width.ts";
import { BUCKETS } from "./wire.ts";

/**
 * What of a gate survives a restart of its object. `waitUntilMs`: no call starts before, by a Retry-After; 0 = there was none.
 * `permitsUntilMs`: no grant of permits is valid for longer; null = not known.
 */
export type GateMemory = {
  stop: StoredStop | null;
  width: StoredWidth | null;
  buckets: StoredBuckets;
  waitUntilMs: number;
  permitsUntilMs: number | null;
};

export const EMPTY_MEMORY: GateMemory = { stop: null, width: null, buckets: {}, waitUntilMs: 0, permitsUntilMs: null };

/** Whether what is known should be stored. `storedMs`: when that was done last. */
export function shouldStore(
  stored: GateMemory,
  now: GateMemory,
  { nowMs, storedMs }: { nowMs: number; storedMs: number },
): boolean {
  const sinceMs = nowMs - storedMs;
  // A run that comes later would send its first calls into a long Retry-After, because it does not wait for the gate's reply.
  if (now.waitUntilMs >= Math.max(nowMs, stored.waitUntilMs) + GATE_HOLD_STORE_MS) return true;
  if (stored.stop?.sinceMs !== now.stop?.sinceMs) return true;
  // That there is a width must be known after a restart, so that no one takes the gate for open.
  if ((stored.width === null) !== (now.width === null)) return true;
  // A later instance lets nobody start for as long as runs may hold permits that it does not know of.
  if (now.width !== null && (now.permitsUntilMs ?? 0) > (stored.permitsUntilMs ?? 0)) return true;
  // So must the limits of headers: an instance that knows none lets all runs start what they have.
  if (BUCKETS.some((name) => (stored.buckets[name] === undefined) !== (now.buckets[name] === undefined))) return true;
  const [before, after] = [stored.width?.width ?? 0, now.width?.width ?? 0];
  // An instance that begins with a width that is too large has calls refused. With one that is too small it only finds room later.
  if (differs(before, after, 0.2) && (after < before || sinceMs >= GATE_STORE_WIDTH_EVERY_MS)) return true;
  return sinceMs >= GATE_STORE_EVERY_MS && hasMoved(stored, now);
}

function hasMoved(stored: GateMemory, now: GateMemory): boolean {
  return BUCKETS.some((name) => {
    const [before, after] = [stored.buckets[name], now.buckets[name]];
    if (before === undefined || after === undefined) return false;
    return differs(before.limit, after.limit, 0.01) || differs(before.factor, after.factor, 0.25);
  });
}

function differs(a: number, b: number, share: number): boolean {
  return Math.abs(a - b) > share * Math.max(a, b);
}
