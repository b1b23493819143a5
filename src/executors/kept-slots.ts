/** Ended slots that a Worker keeps for its client's answer, so that they need not be read from the run's rows. Bounded. */
import { answerChars } from "../answer.ts";
import type { SlotView } from "../objects/methods/groups.ts";

/** Characters that count for a slot beside its text: its numbers and names. */
const SLOT_CHARS = 200;

export class KeptSlots {
  readonly #charsMax: number;
  readonly #slots = new Map<number, SlotView>();
  #chars = 0;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** Keeps a slot, if there is room. */
  add(slot: SlotView): void {
    const chars = SLOT_CHARS + answerChars(slot);
    if (this.#chars + chars > this.#charsMax || this.#slots.has(slot.index)) return;
    this.#chars += chars;
    this.#slots.set(slot.index, slot);
  }

  /** The kept slots from an index on without a gap; empty if that slot is not kept. */
  from(index: number): SlotView[] {
    const run: SlotView[] = [];
    for (let slot = this.#slots.get(index); slot !== undefined; slot = this.#slots.get(index + run.length))
      run.push(slot);
    return run;
  }
}
