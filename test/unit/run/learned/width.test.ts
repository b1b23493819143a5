/**
 * The effect of learned caps on a batch under a tight limit, in simulated time: its width against the same batch without
 * a limit, and the share wasted on answers that are requested again.
 */
import { describe, expect, it } from "vitest";
import { settle } from "../../../../src/run/steps/settle.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../../src/limits.ts";
import { PLAIN_PRICE, seeded, success, TestEngine } from "../../../support/engine.ts";

type Call = { promptTokens: number; completionTokens: number; latencyMs: number };
type Drawn = { name: string; medianTokens: number; sigma: number; promptTokens: number };

const COUNT = 1_000;
const WIDTH = 64;

/** Calls with lognormal completion lengths, like those of models, none longer than the default cap. */
function drawCalls({ medianTokens, sigma, promptTokens }: Omit<Drawn, "name">, seed: number): Call[] {
  const random = seeded(seed);
  return Array.from({ length: COUNT }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const tokens = Math.max(1, Math.round(medianTokens * Math.exp(sigma * normal)));
    const completionTokens = Math.min(COMPLETION_TOKENS_DEFAULT, tokens);
    // A token takes 10 ms to generate, and the first 200 ms.
    return { promptTokens, completionTokens, latencyMs: 200 + 10 * completionTokens };
  });
}

const costOf = ({ promptTokens, completionTokens }: Omit<Call, "latencyMs">): number =>
  (promptTokens * PLAIN_PRICE.inputPicoUsd + completionTokens * PLAIN_PRICE.outputPicoUsd) / 1_000;

type Lived = { wallMs: number; cut: number; spentNanoUsd: number };

/** Runs a batch to its end. An answer ends at the cap of its attempt. */
function live(calls: readonly Call[], usd: number | null, reserve: "learned" | "worst"): Lived {
  const engine = new TestEngine({ width: WIDTH, limits: usd === null ? {} : { usd } });
  const facts = calls.map(({ promptTokens }) => ({ promptBytes: promptTokens, maxTokens: null, reserve }));
  const group = engine.open(facts, { concurrency: WIDTH });
  const running: { endsAtMs: number; attemptId: string; call: Call; capTokens: number }[] = [];
  let nowMs = 0;
  for (;;) {
    for (const { lease, index } of engine.slotsStarted(new Map([[0, COUNT]]), nowMs)) {
      const call = calls[index];
      if (call === undefined) throw new Error(`there is no call ${index}`);
      const capTokens = lease.capTokens ?? Infinity;
      const tokens = Math.min(call.completionTokens, capTokens);
      running.push({ endsAtMs: nowMs + 200 + 10 * tokens, attemptId: lease.attemptId, call, capTokens });
    }
    running.sort((a, b) => b.endsAtMs - a.endsAtMs);
    const next = running.pop();
    if (next === undefined) break;
    nowMs = next.endsAtMs;
    const { promptTokens } = next.call;
    const completionTokens = Math.min(next.call.completionTokens, next.capTokens);
    const whole = success({ promptTokens, completionTokens }, nowMs);
    const isCut = completionTokens < next.call.completionTokens;
    settle(engine.state, next.attemptId, isCut ? { ...whole, ...{ finishReason: "length" } } : whole, nowMs);
  }
  expect(group).toMatchObject({ done: true, status: "completed" });
  const rows = engine.state.takeWrites().slots;
  const cut = rows.filter(({ finishReason }) => finishReason === "length").length;
  return { wallMs: nowMs, cut, spentNanoUsd: engine.state.ledger.spent.usd };
}

const DRAWN: readonly Drawn[] = [
  { name: "labels", medianTokens: 20, sigma: 0.5, promptTokens: 300 },
  { name: "summaries", medianTokens: 250, sigma: 0.5, promptTokens: 2_000 },
  { name: "leaf calls of agents", medianTokens: 300, sigma: 0.9, promptTokens: 1_000 },
  { name: "answers of every length", medianTokens: 300, sigma: 1.3, promptTokens: 500 },
];

describe("a batch without caps, with a budget of twice its true cost", () => {
  it.each(DRAWN)("runs as wide as without a limit and wastes almost nothing: $name", { tags: ["slow"] }, (drawn) => {
    for (const seed of [1, 2, 3]) {
      const calls = drawCalls(drawn, seed);
      const trueNanoUsd = calls.reduce((sum, call) => sum + costOf(call), 0);
      const free = live(calls, null, "learned");
      const learned = live(calls, 2 * trueNanoUsd, "learned");
      const share = free.wallMs / learned.wallMs;
      const waste = learned.spentNanoUsd / trueNanoUsd - 1;
      expect(share).toBeGreaterThanOrEqual(0.9);
      expect(waste).toBeLessThanOrEqual(0.02);
      expect(learned.cut).toBe(0);
    }
  });

  it("is wider than with worst-case reservations that do not fit", () => {
    const calls = drawCalls({ medianTokens: 20, sigma: 0.5, promptTokens: 300 }, 1);
    const usd = 1.5 * calls.reduce((sum, call) => sum + costOf(call), 0);
    const learned = live(calls, usd, "learned");
    const worst = live(calls, usd, "worst");
    expect(learned.wallMs).toBeLessThan(0.7 * worst.wallMs);
    expect(learned.cut).toBe(0);
  });
});
