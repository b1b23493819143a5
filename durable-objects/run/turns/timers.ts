/** Timers of one instance of a run object. What must happen even if the instance is gone is a job of the alarm. */

/** One callback that is due at one time; setting another time moves it. */
export class Timer {
  readonly #callback: () => void;
  #atMs: number | null = null;
  #handle: ReturnType<typeof setTimeout> | null = null;
  #wasLateMs = 0;

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
        this.#wasLateMs = Date.now() - atMs;
        this.#atMs = null;
        this.#callback();
      },
      Math.max(0, atMs - nowMs),
    );
  }

  /** How late it went off since this was last asked, or is by now, ms: the object stood still for as long. */
  takeLateMs(nowMs: number): number {
    const lateMs = Math.max(this.#wasLateMs, this.#atMs === null ? 0 : nowMs - this.#atMs);
    this.#wasLateMs = 0;
    return lateMs;
  }

  /** Sets the time, unless the timer is set. */
  start(inMs: number, nowMs: number): void {
    if (this.#atMs === null) this.set(nowMs + inMs, nowMs);
  }
}
