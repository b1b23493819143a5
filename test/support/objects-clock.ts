/**
 * Time for objects: they ask `Date.now`, which tests in the same isolate can put forward. Timers keep their own pace, so
 * what they would have brought must be brought by the test (`runDurableObjectAlarm`), or they are sped up.
 */
const realNow = Date.now.bind(Date);
const realSetInterval = globalThis.setInterval;
let skippedMs = 0;

Date.now = () => realNow() + skippedMs;

/** Puts the objects' clock forward. There is no way back: what they have written would lie in the future. */
export function skipTime(ms: number): void {
  skippedMs += ms;
}

/** Makes intervals `factor` times as fast until the returned function is called; 0 = they never fire. */
export function paceIntervals(factor: number): () => void {
  const paced = (callback: () => void, ms?: number) =>
    realSetInterval(callback, factor === 0 ? 2 ** 31 - 1 : (ms ?? 0) / factor);
  Object.defineProperty(globalThis, "setInterval", { value: paced, writable: true, configurable: true });
  return () => {
    Object.defineProperty(globalThis, "setInterval", { value: realSetInterval, writable: true, configurable: true });
  };
}
