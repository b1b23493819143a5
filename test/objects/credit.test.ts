/** Leased credit on real objects: what it saves, and that nothing is lost or counted twice, whatever crashes. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { CREDIT_TTL_MS } from "../../src/limits.ts";
import { newRunId, runOf } from "../../src/objects/address.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireOne, crash, evict, storedLeases, SUCCESS } from "../support/objects-direct.ts";
import { expectSettled, openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

/** Makes calls one after the other. Returns their costs. */
async function inARow(run: TestRun, count: number, model: string): Promise<number[]> {
  const costs: number[] = [];
  for (const prompt of prompts(count)) costs.push((await run.query({ prompt, model, max_tokens: 50 })).usage.cost);
  return costs;
}

/** Lets the term of every credit pass. */
async function expire(run: TestRun): Promise<void> {
  skipTime(CREDIT_TTL_MS + 1);
  await runDurableObjectAlarm(run.object);
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);

describe("calls inside credit", () => {
  it("ask the run object for few permits, and are all in its figures and its log", async () => {
    const run = await openRun({ budget: { usd: 100 }, max_parallel: 64, window_ms: 0 });
    watched(run.id);
    const costs = await inARow(run, 60, "up/key/inside");
    const { budget, stats, metrics } = await run.document();
    expectSettled(budget, sum(costs));
    expect(budget.calls.spent).toBe(60);
    expect([stats.total_queries, metrics.attempts, metrics.success_rate]).toEqual([60, 60, 1]);
    const { openCredit = 0, acquireMany = 0 } = watched(run.id).calls;
    expect(openCredit).toBeGreaterThanOrEqual(1);
    expect(acquireMany).toBeLessThan(60);
    const lines = (await (await run.send("GET", `/runs/${run.id}/log`)).text()).trim().split("\n");
    const ofType = (type: string) => lines.filter((line) => line.includes(`"event_type":"${type}"`)).length;
    expect([ofType("attempt_started"), ofType("attempt_ended"), ofType("slot_completed")]).toEqual([60, 60, 60]);
    expect((await upstreamStats("inside")).requests).toBe(60);
  });

  it("never pass the run's limit of calls", async () => {
    const run = await openRun({ budget: { calls: 2_000 }, max_parallel: 64 });
    const ends = await Promise.all(prompts(60).map((prompt) => run.tryQuery({ prompt, model: "up/key/limited" })));
    expect(ends.map(({ status }) => status)).toEqual(Array(60).fill(200));
    const { budget } = await run.document();
    expect(budget.calls).toMatchObject({ spent: 60, reserved: 0, remaining: 1_940 });
  });

  it("stay charged and are never repeated if the run object crashes between them", async () => {
    const run = await openRun({ budget: { usd: 100, calls: 10_000 }, max_parallel: 64 });
    for (let round = 0; round < 4; round++) {
      const calls = prompts(20).map((prompt) => run.tryQuery({ prompt, model: "up/key/crashing/delay/5" }));
      if (round % 2 === 0) await crash(run.object);
      else await evict(run.object).catch(() => undefined);
      await Promise.all(calls);
    }
    const billed = (await upstreamStats("crashing")).requests;
    const { budget } = await run.document();
    // Calls that were in flight at a crash may still be reserved until their leases end.
    expect(budget.calls.spent + budget.calls.reserved).toBeGreaterThanOrEqual(billed);
    expect(budget.calls.spent + budget.calls.reserved).toBeLessThanOrEqual(billed + 100);
  });
});

describe("credit that is not returned", () => {
  it("is reserved until then, is charged when its term is over, and is in the log", async () => {
    const run = await openRun({ budget: { calls: 10_000 }, max_parallel: 64 });
    const need = { usd: 1, calls: 1, prompt_tokens: 1, completion_tokens: 1, new_tokens: 2 };
    await run.query({ prompt: "p", model: "up/key/lost" });
    // From here on a crash forgets nothing.
    await run.document();
    await expect.poll(() => storedLeases(run)).toBe(0);
    const opened = await run.object.openCredit({ creditId: "lost", need, upstreams: ["up"] });
    expect(opened?.terms).toMatchObject({ granted: { usd: null, calls: 49 } });
    expect((await run.document()).budget.calls).toMatchObject({ spent: 1, reserved: 49 });
    await crash(run.object);
    expect((await run.document()).budget.calls).toMatchObject({ spent: 1, reserved: 49 });
    await run.object.reportCredit({ creditId: "lost", number: 1, calls: [], returns: false });
    await expire(run);
    await expect.poll(async () => (await run.document()).budget.calls).toMatchObject({ spent: 50, reserved: 0 });
    const log = await (await run.send("GET", `/runs/${run.id}/log`)).text();
    expect(log).toContain('"event_type":"credit_lost"');
    expect(await run.object.reportCredit({ creditId: "lost", number: 2, calls: [], returns: true })).toMatchObject({
      kind: "ended",
    });
  });
});

describe("settlements that come with a report", () => {
  it.each([
    ["of a credit", "open"],
    ["of a credit that is gone", "gone"],
  ])("%s settle their attempts, once", async (_, creditId) => {
    const run = await openRun({ budget: { calls: 10_000 }, max_parallel: 64 });
    const attemptId = await acquireOne(run);
    const need = { usd: 1, calls: 1, prompt_tokens: 1, completion_tokens: 1, new_tokens: 2 };
    expect(await run.object.openCredit({ creditId: "open", need, upstreams: ["up"] })).not.toBeNull();
    const report = { creditId, number: 1, calls: [], returns: false };
    const settlement = { attemptId, outcome: SUCCESS, stored: null };
    for (let time = 1; time <= 2; time++) {
      expect(await run.object.reportCredit(report, [settlement])).toMatchObject({ settles: true });
    }
    await run.object.reportCredit({ creditId: "open", number: 2, calls: [], returns: true });
    expect((await run.document()).budget.calls).toMatchObject({ spent: 1, reserved: 0 });
  });
});

it("reports and settlements for a run that is deleted end, and do not end its object", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void errors.mockRestore());
  const deleted = runOf(env, newRunId(env));
  const report = { creditId: "credit", number: 1, calls: [], returns: true };
  expect(await deleted.reportCredit(report)).toEqual({ kind: "ended", settles: true });
  const settlement = { attemptId: "call.1", outcome: SUCCESS, stored: null };
  expect(await deleted.settle(settlement)).toMatchObject({ known: false, costNanoUsd: 0, remainingNanoUsd: null });
  expect(await deleted.settleMany([settlement])).toBeUndefined();
  // Objects of earlier tests may tell of other errors meanwhile.
  const ends = errors.mock.calls.filter(([, error]) => error instanceof Error && error.message === "no such run");
  expect(ends).toEqual([]);
});
