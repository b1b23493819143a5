/**
 * The slot machine: `queued → running → completed | failed | cancelled`, `queued → skipped | failed | cancelled`.
 * A retry, a lost executor and a failover are one path: running → queued, with a time before which it may not start.
 */

/** States in which a slot is, as small integers so that a group keeps them in one byte per slot. */
export const SLOT_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type SlotState = (typeof SLOT_STATES)[number];

const NEXT: Record<SlotState, readonly SlotState[]> = {
  // A slot completes without running when it shares the answer of an equal call.
  queued: ["running", "completed", "failed", "skipped", "cancelled"],
  running: ["queued", "completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  skipped: [],
  cancelled: [],
};

/** Whether a slot in this state has ended for good. */
export function hasEnded(state: SlotState): boolean {
  return NEXT[state].length === 0;
}

/** True if the machine allows the step. */
export function mayStep(from: SlotState, to: SlotState): boolean {
  return NEXT[from].includes(to);
}

/**
 * A slot's address within its run: group number and place. One integer, so that it can be a row's primary key.
 * 2^16 places hold the largest group (a Batch file of 50,000 lines); the group number has 37 bits left.
 */
export const PLACES_PER_GROUP = 65_536;

export function slotIdOf(groupSeq: number, index: number): number {
  return groupSeq * PLACES_PER_GROUP + index;
}

export function groupSeqOf(slotId: number): number {
  return Math.floor(slotId / PLACES_PER_GROUP);
}

export function indexOf(slotId: number): number {
  return slotId % PLACES_PER_GROUP;
}

/** The addresses of a group's slots: the first, and the first of the next group. */
export function rangeOf(groupSeq: number): [number, number] {
  return [slotIdOf(groupSeq, 0), slotIdOf(groupSeq + 1, 0)];
}
