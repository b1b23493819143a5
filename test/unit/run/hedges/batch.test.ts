import { describe, expect, it } from "vitest";
import { makeTarget, seeded } from "../../../support/engine.ts";
import { P95, percentile, runHedged } from "../../../support/engine-hedges.ts";

const CALL_MS = 300;
/** Room for the answers of a thousand calls, and for their reservations. */
const PLENTY = { usd: 10_000_000 };

/** Calls of about the same time, of which a part takes twenty times as long. Each attempt draws anew. */
function withStragglers(share: number, random = seeded(7)) {
  return (): number => CALL_MS * (0.9 + 0.2 * random()) * (random() < share ? 20 : 1);
}

describe("a batch with hedges", () => {
  it(
    "has a 99th percentile that is at least five times shorter where 2 % of the calls take 20 times as long",
    { tags: ["slow"] },
    () => {
      const alike = { count: 1_000, width: 64, limits: PLENTY };
      const plain = runHedged({ ...alike, hedge: false, timeOf: withStragglers(0.02) });
      const hedged = runHedged({ ...alike, hedge: P95, timeOf: withStragglers(0.02) });
      expect(plain.hedges).toBe(0);
      const before = percentile(plain.latenciesMs, 0.99);
      const after = percentile(hedged.latenciesMs, 0.99);
      expect(before / after).toBeGreaterThanOrEqual(5);
      expect(hedged.group.counts.completed).toBe(1_000);
    },
  );

  it("costs at most the part that its hedges may cost, by the measure of what is charged", { tags: ["slow"] }, () => {
    for (const maxExtra of [0.01, 0.05, 0.2]) {
      const hedge = { after: "p95", maxExtra } as const;
      const { group, hedges } = runHedged({
        count: 1_000,
        width: 64,
        limits: PLENTY,
        hedge,
        timeOf: withStragglers(0.1),
      });
      const others = group.usage.costNanoUsd - group.extra.costNanoUsd;
      expect(group.extra.calls).toBe(hedges);
      expect(group.extra.costNanoUsd).toBeLessThanOrEqual(maxExtra * others);
    }
  });

  it("has none where all calls are slow, from the beginning or from some time on", () => {
    const random = seeded(3);
    const slow = (): number => CALL_MS * 20 * (0.9 + 0.2 * random());
    expect(runHedged({ count: 400, width: 64, limits: PLENTY, hedge: P95, timeOf: slow }).hedges).toBe(0);
    const slower = ({ startedAtMs }: { startedAtMs: number }): number =>
      startedAtMs < 2_000 ? CALL_MS * (0.9 + 0.2 * random()) : slow();
    expect(runHedged({ count: 1_000, width: 64, limits: PLENTY, hedge: P95, timeOf: slower }).hedges).toBe(0);
    const fixed = { after: 600, maxExtra: 1 } as const;
    expect(runHedged({ count: 400, width: 64, limits: PLENTY, hedge: fixed, timeOf: slow }).hedges).toBe(0);
  });

  it("has none where times vary without stragglers", () => {
    const random = seeded(5);
    const timeOf = (): number => CALL_MS * (0.6 + 0.8 * random());
    expect(runHedged({ count: 1_000, width: 64, limits: PLENTY, hedge: P95, timeOf }).hedges).toBe(0);
  });

  it("hedges the last of its calls, when nothing else is left to do", () => {
    const timeOf = ({ index, attempt }: { index: number; attempt: number }): number =>
      index === 99 && attempt === 1 ? CALL_MS * 20 : CALL_MS;
    const { hedges, latenciesMs } = runHedged({ count: 100, width: 10, limits: PLENTY, hedge: P95, timeOf });
    expect(hedges).toBe(1);
    expect(latenciesMs[99]).toBeLessThanOrEqual(CALL_MS * 3.2);
  });

  it("hedges its first calls by what the gate has said of other runs, as far as its budget for hedges goes", () => {
    const timeOf = ({ index, attempt }: { index: number; attempt: number }): number =>
      index === 2 && attempt === 1 ? CALL_MS * 20 : CALL_MS;
    const few = { count: 4, width: 4, limits: PLENTY, hedge: { after: "p95", maxExtra: 1 } as const, timeOf };
    expect(runHedged(few).hedges).toBe(0);
    const told = runHedged({ ...few, heard: [{ model: makeTarget({}).model, p50Ms: CALL_MS, p95Ms: CALL_MS * 1.2 }] });
    expect(told.hedges).toBe(1);
    expect(told.latenciesMs[2]).toBeLessThanOrEqual(CALL_MS * 3.2);
  });

  it("starts none without room in the budget for a second reservation, and loses no answer", () => {
    // What 100 answers cost, and one reservation: 160 nano-USD and 300.
    const limits = { usd: 100 * 160 + 140 };
    const timeOf = ({ index, attempt }: { index: number; attempt: number }): number =>
      index === 99 && attempt === 1 ? CALL_MS * 20 : CALL_MS;
    const { hedges, group, engine } = runHedged({ count: 100, width: 10, limits, hedge: P95, timeOf });
    expect({ hedges, completed: group.counts.completed }).toEqual({ hedges: 0, completed: 100 });
    expect(engine.state.ledger.spent.usd).toBeLessThanOrEqual(limits.usd);
  });

  it("counts the attempts of free models instead of their cost", () => {
    const free = { price: { inputPicoUsd: 0, cachedInputPicoUsd: 0, outputPicoUsd: 0 } };
    const timeOf = withStragglers(0.1);
    const { hedges } = runHedged({ count: 400, width: 32, hedge: P95, timeOf, target: free });
    expect(hedges).toBeGreaterThan(0);
    expect(hedges).toBeLessThanOrEqual(20);
  });
});
