/** Timers of one instance of a run object. What must happen even if the instance is gone is a job of the alarm. */

/** One callback that is due at one time; setting another time moves it. */
export class Timer {
  readonly #callback: () => void;
  #atMs: number | null = null;
  #handle: ReturnType<typeof setTimeout> | null = null;

  constructor(callback: () => void) {
    this.#callback = callback;
  }

  /** Sets the time; null stops the timer. Setting the same time changes nothing. */
  set(atMs: number | null, nowMs: number): void {
    if (atMs === this.#atMs) return;
    if (this.#handle !== null) clearTimeout(this.#handle);
    this.#atMs = atMs;
    if (atMs === null) return;
    this.#handle = setTimeout(
      () => {
        this.#atMs = null;
        this.#callback();
      },
      Math.max(0, atMs - nowMs),
    );
  }

  /** Sets the time, unless the timer is set. */
  start(inMs: number, nowMs: number): void {
    if (this.#atMs === null) this.set(nowMs + inMs, nowMs);
  }
}
