/**
 * The states of a slot, and its id. The state machine: `queued → running → completed | failed | cancelled`,
 * `queued → completed | failed | skipped | cancelled`. A retry, a lost executor and a failover are one path:
 * running → queued, with a time before which the slot may not start.
 */
import type { CallFacts } from "../../call.ts";

/** The states. A group keeps them as their codes, one byte per slot. */
export const SLOT_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type SlotState = (typeof SLOT_STATES)[number];

const NEXT: Record<SlotState, readonly SlotState[]> = {
  // A queued slot completes when it shares the answer of an equal call, or ends with one that a learned cap cut.
  queued: ["running", "completed", "failed", "skipped", "cancelled"],
  running: ["queued", "completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  skipped: [],
  cancelled: [],
};

/** True if a slot in this state has ended: no step leads out of it. */
export function isFinalState(state: SlotState): boolean {
  return NEXT[state].length === 0;
}

/** True if the state machine allows the step. */
export function mayStep(from: SlotState, to: SlotState): boolean {
  return NEXT[from].includes(to);
}

/** What dispatch must know of a stored slot: the facts of its call, and the index of its model in the group's list. */
export type SlotFacts = CallFacts & {
  modelIndex: number;
  /** Of a call with a cascade: the indexes of the models after its first. */
  laterModels?: readonly number[];
  /** Of an attempt that calls tools for a model: their names. Absent = a model is called. */
  round?: readonly string[];
};

/**
 * A slot's id within its run: its group's number × SLOT_IDS_PER_GROUP + its index in the group. One integer, so that it
 * can be a row's primary key. 2^16 ids are enough for the largest group (a Batch file of 50,000 lines); the group's
 * number has 37 bits left.
 */
export const SLOT_IDS_PER_GROUP = 65_536;

export function slotIdOf(groupSeq: number, index: number): number {
  return groupSeq * SLOT_IDS_PER_GROUP + index;
}

export function groupSeqOf(slotId: number): number {
  return Math.floor(slotId / SLOT_IDS_PER_GROUP);
}

export function indexOf(slotId: number): number {
  return slotId % SLOT_IDS_PER_GROUP;
}

/** The id of an attempt of a slot; the first is 1. */
export function attemptIdOf(slotId: number, attempt: number): string {
  return `${slotId}.${attempt}`;
}

/** The ids of a group's slots: the first, and the first of the next group. */
export function rangeOf(groupSeq: number): [number, number] {
  return [slotIdOf(groupSeq, 0), slotIdOf(groupSeq + 1, 0)];
}
