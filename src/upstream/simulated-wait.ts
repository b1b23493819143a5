/** The simulated upstream's time: it passes on a timer that the caller brings. */

/** Calls `elapsed` after `ms`, unless what it returns is called first. */
export type Timer = (ms: number, elapsed: () => void) => () => void;

/** Resolves after `ms`; rejects with the signal's reason once it aborts, and stops the timer. */
export async function wait(ms: number, timer: Timer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms === 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stopTimer = timer(ms, resolve);
  const leave = (): void => {
    stopTimer();
    reject(signal.reason);
  };
  signal.addEventListener("abort", leave, { once: true });
  await promise;
  signal.removeEventListener("abort", leave);
}
