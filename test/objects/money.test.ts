import { describe, expect, it } from "vitest";
import type { BudgetDocument } from "../../src/contract/runs.ts";
import { expectSettled, openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";

describe("the ledger after a batch", () => {
  it(
    "has spent what the calls cost and reserves nothing if a third of them failed and were retried",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ budget: { usd: 1 }, max_parallel: 30 });
      const answer = await run.batch({ prompts: prompts(60), model: "up/key/again/status/500/first/1/percent/33" });
      expect(answer.status).toBe("completed");
      const retried = answer.items.filter(({ attempts }) => attempts === 2).length;
      expect(retried).toBeGreaterThan(5);
      const { budget, metrics } = await run.document();
      expectSettled(budget, answer.usage.cost);
      expect(answer.usage.cost).toBeCloseTo(sum(answer.items.map(({ usage }) => usage?.cost ?? 0)), 9);
      // Upstream errors are not billed, but each is an attempt that was answered.
      expect(budget.calls.spent).toBe(60 + retried);
      expect(metrics).toMatchObject({ attempts: 60 + retried, retries: retried, success_rate: 1 });
      expect((await upstreamStats("again")).requests).toBe(60 + retried);
    },
  );

  it("charges a truncated answer at its reservation, marked as an estimate, and the next attempt separately", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const answer = await run.batch({ prompts: ["p"], model: "up/key/torn/fault/truncated/first/1", max_tokens: 100 });
    const alone = await run.batch({ prompts: ["p"], model: "up/key/whole", max_tokens: 100 });
    expect(answer.items[0]).toMatchObject({ status: "completed", attempts: 2, estimated: true });
    expect(alone.items[0]).toMatchObject({ status: "completed", attempts: 1, estimated: false });
    // A hundred completion tokens alone cost 60 µUSD.
    expect(answer.usage.cost - alone.usage.cost).toBeGreaterThanOrEqual(0.00006);
    expectSettled(await run.budget(), answer.usage.cost + alone.usage.cost);
  });
});

describe("a budget that ends in the middle of a batch", () => {
  it("completes as many slots as the budget has calls, and refuses the others one by one", async () => {
    const run = await openRun({ budget: { calls: 25 }, max_parallel: 8 });
    const answer = await run.batch({ prompts: prompts(40), model: "up/key/calls/delay/2" });
    expect(answer.status).toBe("partial");
    expect(answer.results.slice(0, 25)).toEqual(prompts(25));
    expect(answer.errors.slice(0, 25)).toEqual(Array(25).fill(null));
    expect(new Set(answer.errors.slice(25).map((error) => error?.code))).toEqual(new Set(["budget_exhausted"]));
    expect(answer.errors[39]).toMatchObject({ retryable: false, limit: 25, spent: 25, reserved: 0, remaining: 0 });
    expect((await upstreamStats("calls")).requests).toBe(25);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it.each([
    { dimension: "usd", limit: 0.0001 },
    { dimension: "prompt_tokens", limit: 150 },
    { dimension: "completion_tokens", limit: 100 },
  ] as const)("keeps $dimension within $limit at every moment", async ({ dimension, limit }) => {
    const run = await openRun({ budget: { [dimension]: limit }, max_parallel: 6 });
    const sampled = sampleWhile(run, run.batch({ prompts: prompts(60), model: "up/delay/10", max_tokens: 40 }));
    const { result: answer, samples } = await sampled;
    expect(answer.status).toBe("partial");
    expect(samples.some((budget) => budget[dimension].reserved > 0)).toBe(true);
    for (const budget of samples) {
      expect(budget[dimension].spent + budget[dimension].reserved).toBeLessThanOrEqual(limit + 1e-12);
    }
    const completed = answer.items.filter(({ status }) => status === "completed");
    const refused = answer.errors.filter((error) => error?.code === "budget_exhausted");
    expect(completed.length).toBeGreaterThan(2);
    expect(completed.length + refused.length).toBe(60);
    expectSettled(await run.budget(), answer.usage.cost);
  });
});

describe("a query", () => {
  it("is refused with 402 once the budget is spent, and reaches no upstream", async () => {
    const run = await openRun({ budget: { calls: 1 } });
    const model = "up/key/spent";
    expect((await run.tryQuery({ prompt: "one", model })).status).toBe(200);
    const end = await run.tryQuery({ prompt: "two", model });
    expect(end).toMatchObject({ status: 402, error: { code: "budget_exhausted", retryable: false, remaining: 0 } });
    expect((await upstreamStats("spent")).requests).toBe(1);
  });

  it("waits while another call reserves what it needs, and succeeds when that one settles for less", async () => {
    const run = await openRun({ budget: { prompt_tokens: 30 } });
    // Each reserves 9 bytes and 8 tokens for its message, and is charged 6: two at once do not fit, one after another do.
    const first = run.query({ prompt: "nine char", model: "up/key/waits/delay/150" });
    const second = run.query({ prompt: "nine more", model: "up/key/waits/delay/150" });
    const ends = await Promise.all([first, second]);
    expect(ends.map(({ text }) => text)).toEqual(["nine char", "nine more"]);
    expect((await upstreamStats("waits")).peakInFlight).toBe(1);
    expectSettled(await run.budget(), ends[0].usage.cost + ends[1].usage.cost);
  });

  it("sends a completion cap that the remaining budget pays for", async () => {
    const run = await openRun({ budget: { completion_tokens: 50 } });
    const prompt = "long ".repeat(100);
    const answer = await run.query({ prompt, model: "up/key/clamped", max_tokens: 1_000 });
    expect(answer.usage.completion_tokens).toBe(50);
    expect(answer.finish_reason).toBe("length");
    expect((await run.budget()).completion_tokens).toEqual({ limit: 50, spent: 50, reserved: 0, remaining: 0 });
  });

  it("shares its budget with a concurrent batch: together they never exceed it", async () => {
    const run = await openRun({ budget: { calls: 30 }, max_parallel: 10 });
    const model = "up/key/both/delay/5";
    const batch = run.batch({ prompts: prompts(40), model });
    const asked = Promise.all(prompts(40, "alone").map((prompt) => run.tryQuery({ prompt, model })));
    const [answer, ends] = await Promise.all([batch, asked]);
    const completed = answer.items.filter(({ status }) => status === "completed").length;
    const succeeded = ends.filter(({ status }) => status === 200).length;
    expect(completed + succeeded).toBe(30);
    expect((await upstreamStats("both")).requests).toBe(30);
    expect((await run.budget()).calls).toEqual({ limit: 30, spent: 30, reserved: 0, remaining: 0 });
  });
});

/** Reads the run's budget again and again until `work` is done. */
async function sampleWhile<T>(run: TestRun, work: Promise<T>): Promise<{ result: T; samples: BudgetDocument[] }> {
  const samples: BudgetDocument[] = [];
  const over = new AbortController();
  const ended = work.finally(() => over.abort());
  while (!over.signal.aborted) {
    samples.push(await run.budget());
    await scheduler.wait(2);
  }
  return { result: await ended, samples };
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
