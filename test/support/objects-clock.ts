/**
 * Time for objects: they ask `Date.now`, which tests in the same isolate can put forward. Timers keep their own pace, so
 * what they would have brought must be brought by the test (`runDurableObjectAlarm`), but for the heartbeats of executors and
 * the opening of sockets, whose time a test sets. Each test file starts at the true time, so that the alarms that its objects set ring by themselves.
 */
import { CALL_SOCKET_AFTER_MS, HEARTBEAT_MS, SOCKET_RENEW_MS } from "../../src/limits.ts";

const realNow = Date.now.bind(Date);
let skippedMs = 0;

Date.now = () => realNow() + skippedMs;

/** Puts the objects' clock back to the true time. Between files only: what objects have written is in the future then. */
export function resetTime(): void {
  skippedMs = 0;
}

/** Puts the objects' clock forward. */
export function skipTime(ms: number): void {
  skippedMs += ms;
}

/**
 * Runs `work` while executors renew their leases every `everyMs`: they and Workers open their sockets as soon; null = never.
 * Only timers started by then are meant.
 */
export function withRenewals<T>(everyMs: number | null, work: () => Promise<T>): Promise<T> {
  return withTimers([HEARTBEAT_MS, CALL_SOCKET_AFTER_MS, SOCKET_RENEW_MS], everyMs, work);
}

/** Runs `work` while timers that are started for one of `delaysMs` take `everyMs` instead; null = they never go off. */
export async function withTimers<T>(
  delaysMs: readonly number[],
  everyMs: number | null,
  work: () => Promise<T>,
): Promise<T> {
  const real = { setInterval: globalThis.setInterval, setTimeout: globalThis.setTimeout };
  const paced = (ms?: number): number | undefined =>
    ms !== undefined && delaysMs.includes(ms) ? (everyMs ?? NEVER_MS) : ms;
  const replace = (name: keyof typeof real, value: unknown): void => {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  };
  for (const name of ["setInterval", "setTimeout"] as const) {
    // Called on its own: the runtime's timers refuse to be methods of another object.
    const set = real[name];
    replace(name, (callback: () => void, ms?: number) => set(callback, paced(ms)));
  }
  try {
    return await work();
  } finally {
    for (const name of ["setInterval", "setTimeout"] as const) replace(name, real[name]);
  }
}

/** Longer than any test file takes. */
const NEVER_MS = 600_000;
