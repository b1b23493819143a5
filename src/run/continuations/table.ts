/** The reasons to go on after an attempt, and what they mean together for a slot: the rest of the run knows none by its name. */
import { answerChars } from "../../answer.ts";
import type { CallFacts, Outcome } from "../../call.ts";
import type { Drained } from "../group/group.ts";
import { KEPT_ANSWER_CHARS_MAX } from "../../limits.ts";
import { answerIn, type Course, type KeptAnswer, type SlotRecord } from "../group/record.ts";
import type { SlotFacts } from "../queue/slot.ts";
import { cascade, stepAt } from "./cascade.ts";
import { START, type Continuation, type Hindrance, type Onward } from "./continuation.ts";
import { samples } from "./samples.ts";
import { schemaRepair } from "./schema-repair.ts";
import { shortAnswer } from "./short-answer.ts";
import { tools } from "./tools.ts";

/** In the order in which they are asked. */
const CONTINUATIONS: readonly Continuation[] = [shortAnswer, schemaRepair, tools, cascade, samples];

/** True if the call may be more than one answer. */
export function hasCourse(facts: CallFacts): boolean {
  return CONTINUATIONS.some((each) => each.appliesTo?.(facts) === true);
}

/** What follows an outcome that no retry follows: the first reason to go on decides. Null = the call ends with it. */
export function onwardOf(outcome: Outcome, facts: SlotFacts, before: Course | undefined): Onward | null {
  return CONTINUATIONS.reduce<Onward | null>((onward, each) => {
    if (onward?.continues === true || each.appliesTo?.(facts) !== true) return onward;
    const next = each.next?.({ outcome, facts, course: onward?.course ?? before ?? START });
    return next == null ? onward : { ...onward, ...next };
  }, null);
}

/** What the outcome of an attempt is for its call, if a reason to go on says so; null = what it seems. */
export function ofCall(outcome: Outcome, attempt: { facts: SlotFacts; drained: Drained | null }): Outcome | null {
  for (const each of CONTINUATIONS) {
    const own = each.appliesTo?.(attempt.facts) === true ? each.ofCall?.(outcome, attempt) : null;
    if (own != null) return own;
  }
  return null;
}

/** The facts of a slot's next attempt, by what its record says of those before. */
export function nextFacts(facts: SlotFacts, record: SlotRecord | undefined): SlotFacts {
  if (record === undefined) return facts;
  return CONTINUATIONS.reduce((next, each) => each.facts?.(next, record) ?? next, facts);
}

/** The final record of a queued slot whose next attempt is hindered, if it ends with what it has; null = it has nothing. */
export function answerLeft(record: SlotRecord | undefined, hindrance: Hindrance, facts: CallFacts): SlotRecord | null {
  if (record === undefined) return null;
  for (const { left } of CONTINUATIONS) {
    const ended = left?.(record, hindrance, facts);
    if (ended != null) return { ...ended, notBeforeMs: null };
  }
  return null;
}

/** Attempts that ended with an answer after which the call went on: they do not count towards its most attempts. */
export function attemptsBefore(record: Pick<SlotRecord, "course"> | undefined): number {
  return record?.course?.toolUse?.talk?.base ?? record?.course?.base ?? 0;
}

/** Takes over what follows the answer that was just added to the record. `facts`: those of its attempt. */
export function follow(
  record: SlotRecord,
  { course: { kept: keptBefore, ...course }, continues, keeps, because, answer }: Onward,
  { model, cascade: models }: Pick<SlotFacts, "model" | "cascade">,
): void {
  const { finishReason, transcript } = answer ?? {};
  if (finishReason !== undefined) record.finishReason = finishReason;
  if (transcript !== undefined) record.parts = { ...record.parts, transcript };
  const kept = keeps === true ? keptOf(record) : keptBefore;
  record.course = kept === undefined ? course : { ...course, kept };
  if (!continues) return;
  if (because !== undefined) {
    const steps = [...(course.steps ?? []), stepAt(record, course, model ?? "", because)];
    Object.assign(record.course, { steps, model: models?.models[steps.length - 1] ?? "" });
  }
  const { talk } = record.course.toolUse ?? {};
  // A conversation that goes on is one step of a cascade, and one sample.
  if (talk !== undefined) talk.base = record.attempts;
  else Object.assign(record.course, { base: record.attempts, baseCostNanoUsd: record.costNanoUsd });
  // The next attempt is made of the call as its client sent it.
  Object.assign(record, { model: null, finishReason: null, text: null, reason: null });
  delete record.parts;
  delete record.checks;
  delete record.cappedBy;
  delete record.upstream;
}

/** The record of a slot that ends, with what its course says of it. */
export function endOfCourse(record: SlotRecord): SlotRecord {
  let ended = record;
  for (const { end } of CONTINUATIONS) {
    const { course } = ended;
    if (end !== undefined && course !== undefined) ended = end({ ...ended, course });
  }
  return ended;
}

/** The answer in a record; undefined if it is too long to be kept. */
function keptOf(record: SlotRecord): KeptAnswer | undefined {
  const { text, model, finishReason, cappedBy, upstream, checks } = record;
  if (text === null || answerChars(record) > KEPT_ANSWER_CHARS_MAX) return undefined;
  return {
    ...answerIn(record),
    model,
    finishReason,
    ...(cappedBy !== undefined && { cappedBy }),
    ...(upstream !== undefined && { upstream }),
    ...(checks !== undefined && { checks }),
  };
}
