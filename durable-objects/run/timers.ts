/** The timers of a run object's instance. What must happen even if the instance is gone is the alarm's, not theirs. */

/** One callback that is due at one time; setting it again moves it. */
export class Timer {
  readonly #callback: () => void;
  #atMs: number | null = null;
  #handle: ReturnType<typeof setTimeout> | null = null;

  constructor(callback: () => void) {
    this.#callback = callback;
  }

  /** Sets the time (null = none). A timer set to the time it has already is left alone. */
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

  /** Sets the time unless one is set. */
  start(inMs: number, nowMs: number): void {
    if (this.#atMs === null) this.set(nowMs + inMs, nowMs);
  }
}
