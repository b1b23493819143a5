/**
 * Time for objects: they ask `Date.now`, which tests in the same isolate can put forward. Timers keep their own pace, so
 * what they would have brought must be brought by the test (`runDurableObjectAlarm`), but for heartbeats, whose pace a
 * test sets.
 */
import { CALL_BEAT_MS, HEARTBEAT_MS } from "../../src/limits.ts";

const realNow = Date.now.bind(Date);
const realTimers = { setInterval: globalThis.setInterval, setTimeout: globalThis.setTimeout };
let skippedMs = 0;

Date.now = () => realNow() + skippedMs;

/** Puts the objects' clock forward. There is no way back: what they have written would lie in the future. */
export function skipTime(ms: number): void {
  skippedMs += ms;
}

/** Runs `work` while executors' heartbeats come every `everyMs`; null = never. Only timers started by then are meant. */
export async function withHeartbeats<T>(everyMs: number | null, work: () => Promise<T>): Promise<T> {
  const isBeat = (ms?: number): boolean => ms === HEARTBEAT_MS || ms === CALL_BEAT_MS;
  const paced = (ms?: number): number | undefined => (isBeat(ms) ? (everyMs ?? NEVER_MS) : ms);
  const replace = (name: keyof typeof realTimers, value: unknown): void => {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  };
  for (const name of ["setInterval", "setTimeout"] as const) {
    replace(name, (callback: () => void, ms?: number) => realTimers[name](callback, paced(ms)));
  }
  try {
    return await work();
  } finally {
    for (const name of ["setInterval", "setTimeout"] as const) replace(name, realTimers[name]);
  }
}

/** Longer than any test file takes. */
const NEVER_MS = 600_000;
