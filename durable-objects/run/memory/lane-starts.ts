/** What decides when a run starts lanes: how many calls one can take, when the last were started, and whether a turn needs some. */
import { EXECUTOR_CALLS_MAX, LANES_START_MS } from "../../../src/limits.ts";

/** In memory only: an instance that restarts starts its lanes with its first alarm. */
export class LaneStarts {
  /** Whether the next alarm starts the lanes that are missing; "now": the present turn makes it fire. */
  #due: "no" | "next" | "now" = "next";
  #reach = EXECUTOR_CALLS_MAX;
  #lastMs = 0;

  /**
   * How many calls a lane can have in flight: the lowest number at which an executor was full. Not the latest: each executor is
   * full at another number, so the latest would fall with every second claim, and each fall starts lanes, which claim.
   */
  get reach(): number {
    return this.#reach;
  }

  /** An executor was full with this many calls. */
  fullAt(calls: number): void {
    this.#reach = Math.min(this.#reach, calls);
  }

  /** A group was opened while the run had no other: its model may answer sooner than that of the last group. */
  forgetReach(): void {
    this.#reach = EXECUTOR_CALLS_MAX;
  }

  /** Lanes were started, or named to a Worker that starts them. */
  started(nowMs: number): void {
    this.#lastMs = nowMs;
  }

  /** The lanes that were started last have found nothing to start, and may have left. */
  mayHaveLeft(): void {
    this.#lastMs = 0;
  }

  /** When lanes may be started again, now or later: until then, those that were started last may be on their way. */
  nextMs(nowMs: number): number {
    return Math.max(nowMs, this.#lastMs + LANES_START_MS);
  }

  /** The next alarm starts the lanes that are missing then. Alarms fire for many reasons, and most find nothing that could start. */
  due(): void {
    if (this.#due === "no") this.#due = "next";
  }

  /** The same, and the present turn makes the alarm fire: slots have become startable that no Worker executes, and whose lanes no Worker starts. */
  need(): void {
    this.#due = "now";
  }

  /** Whether the alarm must fire since the last call. What it starts stays due until it fires. */
  takeNeed(): boolean {
    const isNeeded = this.#due === "now";
    if (isNeeded) this.#due = "next";
    return isNeeded;
  }

  /** Whether lanes are due since the last call. */
  takeDue(): boolean {
    const isDue = this.#due !== "no";
    this.#due = "no";
    return isDue;
  }
}
