/**
 * The course of a call that is more than one answer: a cascade, which goes on to the next of its models while a gate stops the
 * answer of the one before, or samples, which are made until enough of them agree. Each step and each sample is an attempt of
 * the same slot, or several, with reservations of their own. What has ended is in the slot's row before the next attempt
 * starts, so no restart pays for it twice.
 */
import { withSample } from "../answers/samples.ts";
import { votedText } from "../answers/voted-text.ts";
import { answerChars } from "../../answer.ts";
import type { CallFacts, Outcome } from "../../call.ts";
import { toWire } from "../../errors.ts";
import { KEPT_ANSWER_CHARS_MAX } from "../../limits.ts";
import { answerIn, type Course, type KeptAnswer, type SlotRecord, type Step } from "./record.ts";
import type { SlotFacts } from "../queue/slot.ts";
import { gateOf } from "./conditions.ts";

/** True if the call may be more than one answer. */
export function hasCourse({ cascade, sampling }: Pick<CallFacts, "cascade" | "sampling">): boolean {
  return cascade !== undefined || sampling !== undefined;
}

/** What the end of an answer means for its call. */
export type Onward = {
  course: Course;
  /** Whether another attempt follows: at the next model, or the next sample. */
  continues: boolean;
  /** Whether the answer is to be kept: it is the best so far. */
  keeps: boolean;
  /** What stopped the answer, if the call goes on to the next model. */
  because: string | null;
};

/** What follows an outcome that is final for its model or sample; null = the call ends with it, and has no course. */
export function onwardOf(outcome: Outcome, facts: SlotFacts, before: Course | undefined): Onward | null {
  const { cascade, sampling } = facts;
  const course = before ?? { base: 0, baseCostNanoUsd: 0 };
  if (sampling !== undefined) {
    const text = outcome.kind === "success" ? votedText(outcome) : null;
    const { samples, leads, isEnough } = withSample(course.samples, text, sampling);
    return { course: { ...course, samples }, continues: !isEnough, keeps: leads, because: null };
  }
  if (cascade === undefined) return null;
  const stopped = gateOf(outcome, cascade);
  const isLast = stepOf(course) >= cascade.models.length;
  if (stopped !== null && !isLast) return { course, continues: true, keeps: false, because: stopped };
  return before === undefined ? null : { course, continues: false, keeps: false, because: null };
}

/** At which of its models a call is: 0 = at the first. */
function stepOf(course: Course | undefined): number {
  return course?.steps?.length ?? 0;
}

/** The facts of the call at the model that it has come to. */
export function atStep<Facts extends SlotFacts>(facts: Facts, course: Course | undefined): Facts {
  const step = stepOf(course);
  const [model, modelIndex] = [facts.cascade?.models[step - 1], facts.laterModels?.[step - 1]];
  return model === undefined || modelIndex === undefined ? facts : { ...facts, model, modelIndex };
}

/** Attempts of the models or samples before the present one: they do not count towards its most attempts. */
export function attemptsBefore(record: Pick<SlotRecord, "course"> | undefined): number {
  return record?.course?.base ?? 0;
}

/** Takes over what follows the answer that was just added to the record. `facts`: those of its attempt. */
export function follow(
  record: SlotRecord,
  { course: { kept: keptBefore, ...course }, continues, keeps, because }: Onward,
  { model, cascade }: Pick<SlotFacts, "model" | "cascade">,
): void {
  const kept = keeps ? keptOf(record) : keptBefore;
  record.course = kept === undefined ? course : { ...course, kept };
  if (!continues) return;
  if (because !== null) {
    const steps = [...(course.steps ?? []), stepAt(record, course, model ?? "", because)];
    Object.assign(record.course, { steps, model: cascade?.models[steps.length - 1] ?? "" });
  }
  Object.assign(record.course, { base: record.attempts, baseCostNanoUsd: record.costNanoUsd });
  // The next attempt is made of the call as its client sent it.
  Object.assign(record, { model: null, finishReason: null, text: null, reason: null });
  delete record.parts;
  delete record.checks;
  delete record.cappedBy;
  delete record.upstream;
}

/**
 * The end of a slot that has a course: with the best of its samples, if it has one and was not cancelled; with the last of its
 * steps.
 */
export function endOfCourse(record: SlotRecord): SlotRecord {
  if (record.course === undefined) return record;
  const { kept, ...course } = record.course;
  if (course.steps !== undefined) {
    const { state, reason } = record;
    const outcome = state === "completed" || reason === null ? state : toWire(reason).error.code;
    const last = stepAt(record, course, course.model ?? "", outcome);
    return { ...record, course: { ...course, steps: [...course.steps, last] } };
  }
  const isAnswered = kept !== undefined && (record.state === "completed" || record.state === "failed");
  if (!isAnswered) return { ...record, course };
  const best: SlotRecord = { ...record, state: "completed", reason: null, course };
  for (const name of ["parts", "checks", "cappedBy", "upstream"] as const) delete best[name];
  return Object.assign(best, kept);
}

function stepAt(record: SlotRecord, course: Course, model: string, outcome: string): Step {
  const attempts = record.attempts - course.base;
  return { model, outcome, attempts, costNanoUsd: record.costNanoUsd - course.baseCostNanoUsd };
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
