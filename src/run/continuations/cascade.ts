/** A cascade: the call goes on to the next of its models while a gate stops the answer of the one before. */
import { toWire } from "../../errors.ts";
import { gateOf } from "../group/conditions.ts";
import type { Course, SlotRecord, Step } from "../group/record.ts";
import type { Continuation } from "./continuation.ts";

export const cascade: Continuation = {
  appliesTo: (facts) => facts.cascade !== undefined,

  next({ outcome, facts, course }) {
    if (facts.cascade === undefined || stepOf(course) >= facts.cascade.models.length) return null;
    const because = gateOf(outcome, facts.cascade);
    return because === null ? null : { course, continues: true, because };
  },

  /** Those at the model that it has come to. */
  facts(facts, { course }) {
    const step = stepOf(course);
    const [model, modelIndex] = [facts.cascade?.models[step - 1], facts.laterModels?.[step - 1]];
    return model === undefined || modelIndex === undefined ? facts : { ...facts, model, modelIndex };
  },

  /** With the last of its steps. */
  end(record) {
    const { course, state, reason } = record;
    if (course.steps === undefined) return record;
    const outcome = state === "completed" || reason === null ? state : toWire(reason).error.code;
    const last = stepAt(record, course, course.model ?? "", outcome);
    return { ...record, course: { ...course, steps: [...course.steps, last] } };
  },
};

/** At which of its models a call is: 0 = at the first. */
function stepOf(course: Course | undefined): number {
  return course?.steps?.length ?? 0;
}

/** The step of a call that ends at `model`. */
export function stepAt(record: SlotRecord, course: Course, model: string, outcome: string): Step {
  const attempts = record.attempts - course.base;
  return { model, outcome, attempts, costNanoUsd: record.costNanoUsd - course.baseCostNanoUsd };
}
