/**
 * What may follow the end of a slot's attempt, beside a retry: another model, another sample, the next turn of a tool loop. Each
 * reason to go on is a file beside this one; `table.ts` lists them in the order in which they are asked. What has ended is in the
 * slot's row before the next attempt starts, so no restart pays for it twice.
 */
import type { CallFacts, Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import type { Drained } from "../group/group.ts";
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
  /** What the answer gets that does not come from its model; absent = nothing. */
  answer?: { finishReason?: string; transcript?: string };
};

/** Why a queued slot may have to end without its next attempt; `capped`: the budget pays for so many tokens of an answer. */
export type Hindrance =
  | { kind: "refused"; reason: Reason }
  | { kind: "capped"; capTokens: number }
  | { kind: "deadline" };

export type Continuation = {
  /** Whether a call may be more than one answer for this reason. Absent = that is not for the call to say. */
  appliesTo?: (facts: CallFacts) => boolean;
  /** What an outcome is for its call, if not what it seems; null = it is. Absent = always. `drained`: set if its group was stopped. */
  ofCall?: (outcome: Outcome, attempt: { facts: SlotFacts; drained: Drained | null }) => Outcome | null;
  /** What follows; null = nothing, as far as this reason goes: then the next one is asked. Absent = never anything. */
  next?: (ended: FinalEnd) => Onward | null;
  /** The facts of the next attempt. Absent = the call's own. */
  facts?: (facts: SlotFacts, record: SlotRecord) => SlotFacts;
  /** The final record of a queued slot whose next attempt is hindered, if it ends with what it has; null = it has nothing. */
  left?: (record: SlotRecord, hindrance: Hindrance, facts: CallFacts) => SlotRecord | null;
  /** The record of a slot that ends, in whatever way. Absent = it is as its last attempt has left it. */
  end?: (record: SlotRecord & { course: Course }) => SlotRecord;
};

/** A call whose attempts so far say nothing. */
export const START: Course = { base: 0, baseCostNanoUsd: 0 };
