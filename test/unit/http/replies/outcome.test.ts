import { describe, expect, it } from "vitest";
import type { Reason } from "../../../../src/errors.ts";
import { GroupOutcome, outcomeOf } from "../../../../src/http/replies/outcome.ts";
import type { SlotView } from "../../../../src/objects/methods/groups.ts";
import { SAMPLES } from "../../../support/reasons.ts";
import { failedView, slotView } from "./views.ts";

const failed = (reason: Reason["reason"]): SlotView => failedView(SAMPLES[reason], { index: 0 });
const done = slotView({ index: 0, text: "an answer" });
const empty = slotView({ index: 0, text: " \n" });
const cancelled: SlotView = { ...failed("cancelled"), state: "cancelled" };

describe("the outcome of a slot", () => {
  it.each<[SlotView, string | null, boolean]>([
    [done, "SUCCESS", false],
    [empty, "EMPTY_OUTPUT", true],
    [failed("upstream_timeout"), "TIMEOUT", true],
    [failed("deadline_exceeded"), "TIMEOUT", true],
    [failed("schema_violation"), "SCHEMA_VIOLATION", true],
    [failed("upstream_truncated"), "RETRYABLE_FAILURE", true],
    [failed("upstream_rate_limited"), "RETRYABLE_FAILURE", false],
    [failed("overloaded"), "RETRYABLE_FAILURE", false],
    [failed("budget_exhausted"), "NONRETRYABLE_FAILURE", false],
    [failed("model_not_found"), "NONRETRYABLE_FAILURE", false],
    [cancelled, "CANCELLED", false],
    [{ ...done, state: "running" }, null, false],
  ])("%# is one word, and says whether another round may help", (slot, outcome, retry_recommended) => {
    expect(outcomeOf(slot)).toEqual({ outcome, retry_recommended });
  });
});

describe("the outcome of a group", () => {
  const of = (...slots: SlotView[]) => {
    const group = new GroupOutcome();
    for (const slot of slots) group.add(outcomeOf(slot));
    return group.ended;
  };

  it("is success only if each of its slots has an answer", () => {
    expect(of(done, done)).toEqual({ outcome: "SUCCESS", retry_recommended: false });
    expect(of(done, failed("upstream_timeout"))).toEqual({ outcome: "PARTIAL_SUCCESS", retry_recommended: true });
    expect(of(done, failed("budget_exhausted"))).toEqual({ outcome: "PARTIAL_SUCCESS", retry_recommended: false });
    expect(of(done, cancelled)).toEqual({ outcome: "PARTIAL_SUCCESS", retry_recommended: false });
  });

  it("is the failure that all have, or says whether one of several may pass", () => {
    expect(of(failed("upstream_timeout"), failed("deadline_exceeded")).outcome).toBe("TIMEOUT");
    expect(of(cancelled, cancelled).outcome).toBe("CANCELLED");
    expect(of(failed("upstream_timeout"), failed("budget_exhausted")).outcome).toBe("RETRYABLE_FAILURE");
    expect(of(failed("budget_exhausted"), cancelled).outcome).toBe("NONRETRYABLE_FAILURE");
  });

  it("is not known while a slot runs", () => {
    expect(of(done, { ...done, state: "queued" })).toEqual({ outcome: null, retry_recommended: false });
  });
});
