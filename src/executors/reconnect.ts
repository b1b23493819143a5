/**
 * When a lane retries a call to its run that failed, and when it stops retrying. Answers that it has not delivered are
 * paid for, so it keeps them for minutes; a lane without any stops, and the run's alarm starts it when it is needed.
 *
 * A lane has at most `EXECUTOR_CALLS_MAX` leases and claims nothing while its run is unreachable, so it keeps at most that many
 * answers of `RESPONSE_BYTES_MAX` each. It keeps them in memory: an eviction loses them, and their leases end as lost. An
 * answer that arrives after its lease has expired changes nothing, for its attempt is settled at its reservation then and
 * its slot may be running in another attempt: no slot ends twice, and none is charged less than was billed.
 */
import {
  LANE_EMPTY_FAILURES_MAX,
  LANE_KEEP_MS,
  LANE_RECONNECT_FIRST_MS,
  LANE_RECONNECT_MAX_MS,
  OBJECT_OVERLOADED_RETRY_MS,
} from "../limits.ts";
import { jittered } from "../objects/clients/retry.ts";

export class Reconnect {
  #failures = 0;
  #sinceMs = 0;

  /** The run has answered. */
  succeeded(): void {
    this.#failures = 0;
  }

  /**
   * A call has failed. Delay before the next, ms; null = stop. `keeps`: whether there are answers to deliver. A run that is
   * overloaded is left alone for a while first: each further call would keep it so.
   */
  failed(
    { keeps, isOverloaded }: { keeps: boolean; isOverloaded: boolean },
    nowMs: number,
    random: () => number,
  ): number | null {
    if (this.#failures === 0) this.#sinceMs = nowMs;
    this.#failures += 1;
    const isOver = keeps ? nowMs - this.#sinceMs >= LANE_KEEP_MS : this.#failures > LANE_EMPTY_FAILURES_MAX;
    if (isOver) return null;
    const limitMs = Math.min(LANE_RECONNECT_MAX_MS, LANE_RECONNECT_FIRST_MS * 2 ** (this.#failures - 1));
    const pauseMs = isOverloaded ? OBJECT_OVERLOADED_RETRY_MS : 0;
    return pauseMs + jittered(limitMs + pauseMs, random);
  }
}
