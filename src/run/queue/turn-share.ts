/**
 * How many slots one turn may end that had no attempt of their own: refused ones, and those that share the answer of an equal call.
 * A turn is one piece of work, which all other requests of the object wait for. The rest ends in the turns after it.
 */
import { ENDS_PER_TURN_MAX, REPLAYED_UNIT_CHARS } from "../../limits.ts";

export class TurnShare {
  #left = ENDS_PER_TURN_MAX;

  /** True if this turn may end no more of them: another must follow. */
  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** A slot ends with a text of this length. */
  spend(chars: number): void {
    this.#left -= 1 + chars / REPLAYED_UNIT_CHARS;
  }

  /** The turn is over. True if another must follow. */
  renew(): boolean {
    const wasSpent = this.isSpent;
    this.#left = ENDS_PER_TURN_MAX;
    return wasSpent;
  }
}
