/** Samples: the call is made until enough of its answers agree, and ends with the best of them. */
import { withSample } from "../answers/samples.ts";
import { votedText } from "../answers/voted-text.ts";
import type { SlotRecord } from "../group/record.ts";
import type { Continuation } from "./continuation.ts";

export const samples: Continuation = {
  appliesTo: ({ sampling }) => sampling !== undefined,

  next({ outcome, facts: { sampling }, course }) {
    if (sampling === undefined) return null;
    const text = outcome.kind === "success" ? votedText(outcome) : null;
    const { samples: counted, leads, isEnough } = withSample(course.samples, text, sampling);
    return { course: { ...course, samples: counted }, continues: !isEnough, keeps: leads };
  },

  /** With the best of its samples, if it has one and was not cancelled. */
  end(record) {
    const { kept, ...course } = record.course;
    const isAnswered = kept !== undefined && (record.state === "completed" || record.state === "failed");
    if (!isAnswered) return { ...record, course };
    const best: SlotRecord = { ...record, state: "completed", reason: null, course };
    for (const name of ["parts", "checks", "cappedBy", "upstream"] as const) delete best[name];
    return Object.assign(best, kept);
  },
};
