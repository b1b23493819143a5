import { describe, expect, it } from "vitest";
import { askingFor, factsOf } from "../support/objects-direct.ts";
import { skipTime } from "../support/objects-clock.ts";
import { expectSettled, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a query whose client leaves", () => {
  it("while it waits for a permit is taken out of the queue and never sent", async () => {
    const run = await openRun({ max_parallel: 1 });
    const model = "up/key/left-queue/delay/400";
    const running = run.query({ prompt: "runs", model });
    await untilInFlight("left-queue", 1);
    const client = new AbortController();
    const left = run.post("/query", { prompt: "left", model }, { signal: client.signal }).catch(() => null);
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    client.abort();
    await left;
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(1);
    await running;
    expect(watched(run.id).calls["withdraw"]).toBe(1);
    expect((await upstreamStats("left-queue")).requests).toBe(1);
    expect((await run.document()).stats.pending_queries).toBe(0);
  });

  it("leaves no call to the run's object behind: taking it back answers the one that waits", async () => {
    const run = await openRun({ max_parallel: 1 });
    const facts = factsOf("p", "up/x");
    await run.object.acquire(askingFor("holds the permit", facts));
    const waiting = run.object.acquire(askingFor("left", facts));
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    await run.object.withdraw("left");
    expect(await waiting).toEqual({ ok: "wait" });
  });

  it("while the upstream works on it is stopped, and charged as reserved", async () => {
    const run = await openRun({ budget: { completion_tokens: 500 } });
    const client = new AbortController();
    const asked = run.post(
      "/query",
      { prompt: "left", model: "up/key/left-flight/delay/1500", max_tokens: 100 },
      { signal: client.signal },
    );
    const left = asked.catch(() => null);
    await untilInFlight("left-flight", 1);
    const startedMs = Date.now();
    client.abort();
    await left;
    await expect.poll(async () => (await run.budget()).completion_tokens.reserved).toBe(0);
    expect(Date.now() - startedMs).toBeLessThan(1_000);
    const budget = await run.budget();
    expect(budget.completion_tokens.spent).toBe(100);
    expectSettled(budget, budget.usd.spent);
    expect((await upstreamStats("left-flight")).requests).toBe(1);
  });

  it("while it waits to be tried again is not tried again", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const client = new AbortController();
    const model = "up/key/left-retry/status/503/retry-after/1/first/1";
    const left = run.post("/query", { prompt: "left", model }, { signal: client.signal }).catch(() => null);
    await expect.poll(async () => (await run.document()).metrics.attempts).toBe(1);
    client.abort();
    await left;
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(0);
    // Its time has come, and the next call lets the run see what is due.
    skipTime(5_000);
    await run.query({ prompt: "next", model: "up/key/left-retry" });
    expect((await upstreamStats("left-retry")).sends).toEqual({ left: 1, next: 1 });
    expect((await run.budget()).calls).toMatchObject({ spent: 1, reserved: 0 });
  });
});

describe("a batch whose client leaves", () => {
  it("runs to its end", async () => {
    const run = await openRun({ max_parallel: 4 });
    const client = new AbortController();
    const body = { prompts: prompts(12), model: "up/key/left-batch/delay/50" };
    const left = run.post("/batch", body, { signal: client.signal }).then((response) => response.text());
    await untilInFlight("left-batch", 4);
    client.abort();
    await left.catch(() => null);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect((await upstreamStats("left-batch")).requests).toBe(12);
  });
});
