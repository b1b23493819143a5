/**
 * The early calls of a graph: those of tasks whose conditions are likely to hold, made before that is known. Each is a group of its own,
 * whose answer the task takes over if its condition holds.
 */
import type { SlotState } from "../queue/slot.ts";

/** How an early call has ended. */
export type EarlyEnd = { state: SlotState; costNanoUsd: number };

/** `worstNanoUsd`: what it may cost. `end`: null while it has not ended. */
type EarlyCall = { seq: number; worstNanoUsd: number; end: EarlyEnd | null };

/**
 * What early calls have come to. `used`: their answers were taken over. `spentNanoUsd`: the cost of all that have ended;
 * `wastedNanoUsd`: of those that no task has taken over, or will. `open`: the groups of those that have not ended.
 */
export type Speculation = {
  started: number;
  used: number;
  spentNanoUsd: number;
  wastedNanoUsd: number;
  open: readonly number[];
};

export class EarlyCalls {
  readonly #maxNanoUsd: number;
  /** By the index of the slot whose call it is. */
  readonly #calls = new Map<number, EarlyCall>();

  /** @param maxNanoUsd What the early calls may cost in all that no task takes over. */
  constructor(maxNanoUsd: number) {
    this.#maxNanoUsd = maxNanoUsd;
  }

  /** A call was opened, now or before a restart. */
  opened(index: number, call: Omit<EarlyCall, "end">): void {
    this.#calls.set(index, { ...call, end: null });
  }

  /** A call has ended, now or before a restart. */
  ended(index: number, end: EarlyEnd): void {
    const call = this.#calls.get(index);
    if (call !== undefined) call.end = end;
  }

  /** Whether a slot has had an early call: it gets no second one. */
  has(index: number): boolean {
    return this.#calls.has(index);
  }

  /** The group of the call of a slot that has not ended; null = there is none. */
  openFor(index: number): number | null {
    const call = this.#calls.get(index);
    return call === undefined || call.end !== null ? null : call.seq;
  }

  /** The group that has the answer to the call of a slot; null = there is none. */
  answerFor(index: number): number | null {
    const call = this.#calls.get(index);
    return call?.end?.state === "completed" ? call.seq : null;
  }

  /** The calls that have not ended, with the indexes of their slots. */
  get open(): { index: number; seq: number }[] {
    return [...this.#calls].flatMap(([index, { seq, end }]) => (end === null ? [{ index, seq }] : []));
  }

  /** Whether one more call fits: none of those that may be made for nothing may cost more than the bound in all. */
  hasRoomFor(worstNanoUsd: number, stateOf: (index: number) => SlotState): boolean {
    let risked = worstNanoUsd;
    for (const [index, call] of this.#calls)
      if (!isUsed(call, stateOf(index))) risked += call.end === null ? call.worstNanoUsd : call.end.costNanoUsd;
    return risked <= this.#maxNanoUsd;
  }

  /** What they have come to. `stateOf`: of the slots whose calls they are. */
  summary(stateOf: (index: number) => SlotState): Speculation {
    const sum = { started: 0, used: 0, spentNanoUsd: 0, wastedNanoUsd: 0, open: this.open.map(({ seq }) => seq) };
    for (const [index, call] of this.#calls) {
      const { end } = call;
      // One that was cancelled before it was sent is as if it had never been opened.
      if (end?.state === "cancelled" && end.costNanoUsd === 0) continue;
      sum.started += 1;
      if (end === null) continue;
      sum.spentNanoUsd += end.costNanoUsd;
      const state = stateOf(index);
      if (isUsed(call, state)) sum.used += 1;
      // The condition of a queued task is open still.
      else if (end.state !== "completed" || state !== "queued") sum.wastedNanoUsd += end.costNanoUsd;
    }
    return sum;
  }
}

/** Whether a task has taken over the answer: it is there before its slot may start, so the slot has no other one. */
function isUsed({ end }: EarlyCall, state: SlotState): boolean {
  return end?.state === "completed" && state === "completed";
}
