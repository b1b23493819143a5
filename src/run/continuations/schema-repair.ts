/** An answer that does not fit the schema of its call: the call is asked again, with that answer and what is wrong with it. */
import { hasInvalidAnswer } from "../group/record.ts";
import { factsWithRepair } from "../group/schema-check.ts";
import type { Continuation } from "./continuation.ts";

export const schemaRepair: Continuation = {
  /** Those of a request that repeats the answer. */
  facts: (facts, record) => factsWithRepair(facts, record),

  /** It failed with that answer, whatever keeps another one away. */
  left(record, { kind }) {
    if (!hasInvalidAnswer(record) || kind === "capped") return null;
    const reason = { reason: "schema_violation", message: record.checks.violation } as const;
    return { ...record, state: "failed", reason, model: null, finishReason: null };
  },
};
