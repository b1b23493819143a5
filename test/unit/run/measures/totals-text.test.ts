import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addAttempt } from "../../../../src/gate/meter.ts";
import { addDuration, addDurations, durationsText, noDurations } from "../../../../src/run/measures/percentiles.ts";
import { totalsText } from "../../../../src/run/measures/totals-text.ts";
import {
  addExtra,
  addFailures,
  addModel,
  addTimes,
  zeroTotals,
  type Totals,
} from "../../../../src/run/measures/totals.ts";

/** What may happen to the totals of a shard. */
const steps = fc.record({
  model: fc.constantFrom("up/a", "up/b", 'up/"c"', "other/d"),
  gate: fc.constantFrom("up", "up#key", "other"),
  latencyMs: fc.oneof(fc.nat(900_000), fc.double({ min: 0, max: 2_000, noNaN: true })),
  queuedMs: fc.nat(50),
  costNanoUsd: fc.nat(1_000_000),
  kind: fc.constantFrom("answer", "free", "failure", "announced", "peak"),
});

function apply(totals: Totals, step: Step): void {
  const { model, gate, latencyMs, queuedMs, costNanoUsd, kind } = step;
  if (kind === "announced") {
    for (const metered of Object.values(totals.metered ?? {})) delete metered.isOwed;
    return;
  }
  if (kind === "peak") {
    totals.peakParallel = latencyMs;
    return;
  }
  const cost = kind === "free" ? 0 : costNanoUsd;
  const [upstream = "", name = ""] = model.split("/");
  const charge = { calls: 1, promptTokens: queuedMs, completionTokens: 7, costNanoUsd: cost };
  addModel(totals.models, model, charge);
  addTimes(totals, { latencyMs, queuedMs });
  const at = ((totals.metered ??= {})[gate] ??= { number: 0, sheet: {} });
  const outcome = kind === "failure" ? "failed" : "success";
  addAttempt(at.sheet, { upstream, model: name, outcome, charge, latencyMs, queuedMs }, Infinity);
  at.number += 1;
  at.isOwed = true;
  totals.spent.usd += cost;
  if (kind === "failure") addFailures(totals, "upstream_error");
  if (kind === "free") addExtra(totals, { calls: 1, costNanoUsd });
}

type Step = typeof steps extends fc.Arbitrary<infer Value> ? Value : never;

describe("the text of totals", () => {
  it("is theirs after each change, whatever it has kept of the text before", () => {
    const property = fc.property(fc.array(steps, { maxLength: 40 }), (changes) => {
      const totals = zeroTotals();
      expect(JSON.parse(totalsText(totals))).toEqual(totals);
      for (const change of changes) {
        apply(totals, change);
        expect(JSON.parse(totalsText(totals))).toEqual(JSON.parse(JSON.stringify(totals)));
      }
    });
    fc.assert(property, { numRuns: 100 });
  });

  it("is that of totals which were read from a row, too", () => {
    const totals = zeroTotals();
    addTimes(totals, { latencyMs: 20, queuedMs: 0 });
    addModel(totals.models, "up/a", { calls: 1, promptTokens: 1, completionTokens: 1, costNanoUsd: 1 });
    const read: Totals = JSON.parse(totalsText(totals));
    addTimes(read, { latencyMs: 2_000, queuedMs: 3 });
    addModel(read.models, "up/a", { calls: 1, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
    expect(JSON.parse(totalsText(read))).toEqual(read);
    expect(JSON.parse(totalsText(totals))).toEqual(totals);
  });
});

describe("the text of durations", () => {
  it("is what JSON.stringify makes of them, after each that is added and after sums", () => {
    const durations = fc.array(fc.nat(900_000), { maxLength: 60 });
    const property = fc.property(durations, durations, (some, others) => {
      const all = noDurations();
      const more = noDurations();
      for (const duration of others) addDuration(more, duration);
      for (const duration of some) {
        addDuration(all, duration);
        expect(durationsText(all)).toBe(JSON.stringify(all));
      }
      addDurations(all, more);
      expect(durationsText(all)).toBe(JSON.stringify(all));
    });
    fc.assert(property, { numRuns: 100 });
  });
});
