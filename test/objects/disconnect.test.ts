import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { acquireRequest, factsOf } from "../support/objects-direct.ts";
import { acquire, watchClient } from "../../src/executors/permit.ts";
import { RunObject } from "../../src/index.ts";
import { ABANDONED_MS } from "../../src/limits.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { skipTime } from "../support/objects-clock.ts";
import {
  asOperator,
  expectSettled,
  openLatch,
  openRun,
  prompts,
  type TestRun,
  untilInFlight,
  upstreamStats,
} from "../support/objects-run.ts";
import { logOf } from "../support/objects-log.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a query whose client disconnects", () => {
  it("while it waits for a permit is removed from the queue and never sent", async () => {
    const run = await openRun({ max_parallel: 1 });
    const model = "up/key/left-queue/latch/left-queue";
    const running = run.query({ prompt: "runs", model });
    await untilInFlight("left-queue", 1);
    const client = new AbortController();
    const left = run.post("/query", { prompt: "left", model }, { signal: client.signal }).catch(() => null);
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    client.abort();
    await left;
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(1);
    await openLatch("left-queue");
    await running;
    expect(watched(run.id).calls["withdraw"]).toBe(1);
    expect((await upstreamStats("left-queue")).requests).toBe(1);
    expect((await run.document()).stats.pending_queries).toBe(0);
  });

  it("waits for its withdrawal, which would be lost with the request that sends it", async () => {
    const plain = RunObject.prototype.withdraw;
    onTestFinished(() => void (RunObject.prototype.withdraw = plain));
    RunObject.prototype.withdraw = async function (this: RunObject, callId) {
      await scheduler.wait(300);
      await plain.call(this, callId);
    };
    const run = await openRun({ max_parallel: 1 });
    const running = run.query({ prompt: "runs", model: "up/key/left-waiting/latch/left-waiting" });
    await untilInFlight("left-waiting", 1);
    const client = new AbortController();
    const request = acquireRequest(crypto.randomUUID(), factsOf("p", "up/x"));
    const waiting = acquire(new RunCaller(env, run.id), request, watchClient(client.signal));
    const pending = async (): Promise<number> => (await run.document()).stats.pending_queries;
    await expect.poll(pending).toBe(2);
    client.abort();
    expect(await waiting).toBeNull();
    expect(await pending()).toBe(1);
    await openLatch("left-waiting");
    await running;
  });

  it("leaves no pending call to the run object: its withdrawal ends the one that waits", async () => {
    const run = await openRun({ max_parallel: 1 });
    const facts = factsOf("p", "up/x");
    await run.object.acquire(acquireRequest("holds the permit", facts));
    const waiting = run.object.acquire(acquireRequest("left", facts));
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    await run.object.withdraw("left");
    expect(await waiting).toEqual({ ok: "wait" });
  });

  it("while the upstream works on it is stopped, and charged at its reservation", async () => {
    const run = await openRun({ budget: { completion_tokens: 500 } });
    const client = new AbortController();
    const asked = run.post(
      "/query",
      { prompt: "left", model: "up/key/left-flight/latch/never", max_tokens: 100 },
      { signal: client.signal },
    );
    const left = asked.catch(() => null);
    await untilInFlight("left-flight", 1);
    client.abort();
    await left;
    // The upstream never answers, so it is the client's leaving that ends the call.
    await expect.poll(async () => (await run.budget()).completion_tokens.reserved).toBe(0);
    const budget = await run.budget();
    expect(budget.completion_tokens.spent).toBe(100);
    expectSettled(budget, budget.usd.spent);
    expect((await upstreamStats("left-flight")).requests).toBe(1);
  });

  it("while it waits for a retry is not retried", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const client = new AbortController();
    const model = "up/key/left-retry/status/503/retry-after/60/first/1";
    const left = run.post("/query", { prompt: "left", model }, { signal: client.signal }).catch(() => null);
    await expect.poll(async () => (await run.document()).metrics.attempts).toBe(1);
    client.abort();
    await left;
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(0);
    // Its time has come, and the next call lets the run see what is due.
    skipTime(60_000);
    await run.query({ prompt: "next", model: "up/key/left-retry" });
    expect((await upstreamStats("left-retry")).sends).toEqual({ left: 1, next: 1 });
    expect((await run.budget()).calls).toMatchObject({ spent: 2, reserved: 0 });
  });
});

describe("a batch whose client disconnects", () => {
  it("runs to its end", async () => {
    const run = await openRun({ max_parallel: 4 });
    const client = new AbortController();
    const body = { prompts: prompts(12), model: "up/key/left-batch/latch/left-batch" };
    const left = run.post("/batch", body, { signal: client.signal }).then((response) => response.text());
    await untilInFlight("left-batch", 4);
    client.abort();
    await left.catch(() => null);
    await openLatch("left-batch");
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect((await upstreamStats("left-batch")).requests).toBe(12);
  });
});

describe("in a paused run, a call whose client disconnects", () => {
  const TOOLS = [{ name: "search", url: "https://tools.example.com/search" }];
  const messages = [{ role: "user", content: "left" }];

  async function openPaused(): Promise<TestRun> {
    const run = await openRun({ tools: TOOLS, budget: { usd: 1 } });
    expect((await asOperator("PATCH", `/runs/${run.id}`, { paused: true })).status).toBe(200);
    return run;
  }

  const pendingOf = async (run: TestRun): Promise<number> => (await run.document()).stats.pending_queries;

  it.each([
    ["/query", { prompt: "left" }],
    ["/llm_query", { prompt: "left" }],
    ["/v1/chat/completions", { messages }],
    ["/v1/chat/completions", { messages, stream: true }],
    ["/batch", { prompts: prompts(3), detach: false }],
  ])("of %s is withdrawn, and not sent when the run resumes", async (path, call) => {
    const run = await openPaused();
    const key = `left-paused${path.replaceAll("/", "-")}-${"stream" in call}`;
    const client = new AbortController();
    const body = { ...call, model: `up/key/${key}` };
    const left = run.post(path, body, { signal: client.signal }).then((response) => response.text());
    await expect.poll(() => pendingOf(run)).toBeGreaterThan(0);
    client.abort();
    await left.catch(() => null);
    await expect.poll(() => pendingOf(run)).toBe(0);
    await asOperator("PATCH", `/runs/${run.id}`, { paused: false });
    await run.query({ prompt: "next", model: "up/echo" });
    expect((await upstreamStats(key)).requests).toBe(0);
    expect((await run.budget()).calls).toMatchObject({ spent: 1, reserved: 0 });
  });

  it("and whose Worker ends as well is withdrawn and logged after its lease", async () => {
    const run = await openPaused();
    const waiting = run.object.acquire(acquireRequest("left", factsOf("p", "up/x")));
    await expect.poll(() => pendingOf(run)).toBe(1);
    expect(await waiting).toEqual({ ok: "wait" });
    expect(await pendingOf(run)).toBe(1);
    skipTime(ABANDONED_MS);
    await expect.poll(() => pendingOf(run)).toBe(0);
    expect((await logOf(run)).filter(({ event_type }) => event_type === "slot_completed")).toMatchObject([
      { status: "failed", call_id: "left" },
    ]);
  });

  it("of a tool is withdrawn, and frees its position in the queue", async () => {
    const run = await openPaused();
    const client = new AbortController();
    const left = run.post("/tool_call", { tool_name: "search", input: {} }, { signal: client.signal });
    await expect.poll(() => watched(run.id).calls["acquireTool"]).toBe(1);
    client.abort();
    await left.catch(() => null);
    await expect.poll(() => watched(run.id).calls["endTool"]).toBeGreaterThan(0);
    await asOperator("PATCH", `/runs/${run.id}`, { paused: false });
    expect((await run.document()).status).toBe("active");
  });
});
