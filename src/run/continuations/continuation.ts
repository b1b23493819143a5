/**
 * What may follow the end of a slot's attempt, beside a retry: another model, another sample, the next turn of a tool loop. Each
 * reason to go on is a file beside this one; `table.ts` lists them in the order in which they are asked. What has ended is in the
 * slot's row before the next attempt starts, so no restart pays for it twice.
 */
import type { CallFacts, Outcome } from "../../call.ts";
import type { Course, SlotRecord } from "../group/record.ts";
import type { SlotFacts } from "../queue/slot.ts";

/** An outcome that no retry follows. `course`: how far the call was before. */
export type FinalEnd = { outcome: Outcome; facts: SlotFacts; course: Course };

/** What the end of an answer means for its call. */
export type Onward = {
  course: Course;
  /** Whether another attempt of the slot follows. */
  continues: boolean;
  /** Whether the answer is to be kept: it is the best so far. Absent = it is not. */
  keeps?: boolean;
  /** Why the call goes on to its next model; absent = it does not. */
  because?: string;
};

export type Continuation = {
  /** Whether a call may go on for this reason. */
  appliesTo: (facts: CallFacts) => boolean;
  /** What follows; null = nothing, as far as this reason goes: then the next one is asked. */
  next: (ended: FinalEnd) => Onward | null;
  /** The facts of the next attempt. Absent = the call's own. */
  facts?: <Facts extends SlotFacts>(facts: Facts, course: Course) => Facts;
  /** The record of a slot that ends, in whatever way. Absent = it is as its last attempt has left it. */
  end?: (record: SlotRecord & { course: Course }) => SlotRecord;
};

/** A call whose attempts so far say nothing. */
export const START: Course = { base: 0, baseCostNanoUsd: 0 };

