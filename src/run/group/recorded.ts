/** The slots that may end with a recorded answer: which are still to be looked up, and how many may end in one turn. */
import { REPLAYED_PER_TURN_MAX, REPLAYED_UNIT_CHARS } from "../../limits.ts";
import type { Group } from "./group.ts";
import type { KeptAnswer, SlotRecord } from "./record.ts";

/** A recorded answer as a slot's record has it. */
export type ReplayedSlot = Pick<SlotRecord, "text" | "parts" | "model" | "finishReason" | "upstream" | "checks"> & {
  replay: { key: string; of: string };
};

/** The answer that a slot ends with instead of an attempt: a recorded one, or that of a call which was made for it. */
export type RecalledSlot = ReplayedSlot | (KeptAnswer & Pick<SlotRecord, "latencyMs" | "queuedMs">);

/** `awaited`: it is being looked up, and a turn follows. */
export type Recall = RecalledSlot | "awaited" | null;

/** What the shell knows of recorded answers. Absent = the run records none. */
export type ReplayDeps = {
  /** The recorded answer of a queued slot, which its epoch has had from now on. */
  recall: (group: Group, slotId: number) => Recall;
  /** A slot has completed: the key under which its answer is recorded; null = it is not recorded. */
  completed: (group: Group, record: SlotRecord) => string | null;
};

/** The slots to look up, and how many may still end in this turn. */
export class ReplayQueue {
  #slots: number[] = [];
  #left = REPLAYED_PER_TURN_MAX;

  add(slotId: number): void {
    this.#slots.push(slotId);
  }

  /** A turn begins. */
  begin(): void {
    this.#left = REPLAYED_PER_TURN_MAX;
  }

  /** True if this turn may end no more of them: another must follow. */
  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** The slots to look up now. What they make ready is added to the queue meanwhile. */
  take(): number[] {
    const slots = this.#slots;
    this.#slots = [];
    return slots;
  }

  putBack(slots: number[]): void {
    this.#slots = [...slots, ...this.#slots];
  }

  /** A slot ends with a text of this length. */
  spend(chars: number): void {
    this.#left -= 1 + chars / REPLAYED_UNIT_CHARS;
  }
}
