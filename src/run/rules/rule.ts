/**
 * A rule of a group: what its client asks for beside its calls, such as that it stops once it has enough answers. Each rule is a file
 * beside this one; `table.ts` lists them, and what happens to the group asks the table. A rule starts and ends nothing by itself: it says what
 * should happen, and `steps` does it.
 */
import type { InFlightRule } from "../answers/early-stop.ts";
import type { Tier, TierFailures } from "../answers/tiers.ts";
import type { AnswerParts } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { indexOf, type SlotState } from "../queue/slot.ts";

/** What a rule sees of its group. */
export type RuledGroup = {
  readonly header: { readonly count: number };
  readonly counts: Readonly<Record<SlotState, number>>;
  /** Whether all of its slots have ended. */
  readonly done: boolean;
  /** Whether an early stop was met, or the group was stopped for another cause. */
  readonly hasStopped: boolean;
  /** Set if its slots depend on each other. */
  readonly graph: RuledGraph | null;
  stateOf: (index: number) => SlotState;
  /** False for a slot that does not exist, or that a condition has skipped. */
  isWanted: (index: number) => boolean;
};

type RuledGraph = {
  /** Whether the slot's output is one of the graph's. */
  isSink: (index: number) => boolean;
  taskOf: (index: number) => { readonly id: string };
  /** The tasks that failed although they have alternatives. */
  lostTasks: () => readonly { index: number; tier: Tier }[];
};

/** A slot that has ended, as its row has it. */
export type EndedSlot = {
  id: number;
  state: SlotState;
  reason: Reason | null;
  text: string | null;
  parts?: AnswerParts;
};

/** A slot that has failed and that nothing answers for: of a graph the first of its task. */
export type FailedSlot = { index: number; reason: Reason | null };

/**
 * What a group does because of a rule. `stop`: it has what its client needs, by the rule that `rule` describes. `abort`: none of its other
 * slots starts, and `message` says why. `served`: calls may be due that serve the group. `escalated`: the failure of the slot is for a person to look at.
 */
export type RuleEffect =
  | { kind: "stop"; rule: string }
  | { kind: "abort"; message: string }
  | { kind: "served" }
  | { kind: "escalated"; index: number; reason: Reason };

/** How a group has ended. `answered` of the slots that were `expected` to complete have an answer. */
export type GroupEnding = { isComplete: boolean; isCancelled: boolean; answered: number; expected: number };

/**
 * How a group ends, where a rule decides it: with what its client wants, with something for a person to look at, or without the decision
 * of its vote, which is also for a person.
 */
export type GroupVerdict = "completed" | "escalated" | "undecided";

/** How a group stops early. `shadow`: it runs on, and only says what the stop would have saved. */
export type Stopping = InFlightRule & { shadow: boolean };

/** What a group's row and its readers are told of its rules; absent = it has no such rule. */
export type ShownByRules = {
  /** Ids of the groups of the calls of its judge. */
  judges?: readonly string[];
  /** The failed slots of a group with tiers. */
  tierFailures?: TierFailures;
  /** Of a group with `atLeast` that has ended: the slots that did not complete. */
  missing?: number[];
};

/** A rule of one group, in memory. Every hook may be absent: the rule has nothing to say there. */
export type ActiveRule = {
  /** Most attempts of the group that may be in flight now. */
  width?: () => number;
  /** Whether an answer may stop the group: then slots with recorded answers end one by one. */
  mayStop?: true;
  /** Whether a restart must tell it of the slots that ended before. */
  remembersEnds?: () => boolean;
  /** A slot has ended, now or before a restart. What follows from ends before a restart has happened. */
  onSlotEnd?: (slot: EndedSlot) => RuleEffect | null;
  /** Slots have failed: what each of them means, and what all of them do. */
  onFailure?: (failed: readonly FailedSlot[]) => readonly RuleEffect[];
  /** How the group ends, if this rule decides it; null = it does not. */
  onGroupEnd?: (ending: GroupEnding) => GroupVerdict | null;
  /** What the row of the group and its readers are told. */
  shown?: () => ShownByRules;
};

/** A kind of rule. `Requested`: the fields that ask for it, of the request that opens a group; `Stored`: what its row keeps. */
export type Rule<Requested, Stored> = {
  stored: (request: Requested) => Stored;
  /** What the retry of a group takes over of the rule. */
  again: (stored: Stored) => Stored;
  /** The rule of a group; null = the group has no such rule. */
  of: (stored: Stored, group: RuledGroup) => ActiveRule | null;
  /** How it stops a group early. Absent = it stops none. */
  stopping?: (stored: Stored) => Stopping | null;
};

/** Whether a slot has ended with an answer of its group: of a graph a result of it, and no text for the case of a failure. */
export function isAnswer({ graph }: RuledGroup, { id, state, reason }: EndedSlot): boolean {
  if (state !== "completed") return false;
  return graph === null || (reason === null && graph.isSink(indexOf(id)));
}
