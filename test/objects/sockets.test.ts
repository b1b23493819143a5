/** Sockets of Workers that hold something of a run: they keep leases without heartbeats, also while the run sleeps. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { RunObject } from "../../src/index.ts";
import { CALL_SOCKET_AFTER_MS, FOUND_LEASE_TTL_MS, LEASE_TTL_MS, LOST_CALL_MS } from "../../src/limits.ts";
import { DONE_CODE } from "../../src/objects/clients/run-socket.ts";
import { skipTime, withTimers } from "../support/objects-clock.ts";
import { acquireOne, acquireRequest, crash, evict, factsOf, SUCCESS } from "../support/objects-direct.ts";
import { lookAt, openAsync } from "../support/objects-group.ts";
import {
  expectSettled,
  letThrough,
  openLatch,
  openRun,
  prompts,
  type TestRun,
  untilInFlight,
  upstreamStats,
} from "../support/objects-run.ts";
import { hold, signalsOf } from "../support/objects-sockets.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const TOOLS = [{ name: "search", url: "https://tools.example.com/search" }];
const TOOL = { callId: "held", tool: "search" };

describe("a query that lasts", () => {
  it("keeps its lease by one socket and no other call, for as long as its attempt may take", async () => {
    const run = await openRun();
    const answer = await early(async () => {
      const query = run.query({ prompt: "p", model: "up/key/held/latch/held" });
      await untilInFlight("held", 1);
      await untilSockets(run, 1);
      await age(run, 3 * LEASE_TTL_MS);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 1 });
      await openLatch("held");
      return query;
    });
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expectSettled(await run.budget(), answer.usage.cost);
    const { acquireMany, fetch, heartbeat } = watched(run.id).calls;
    expect({ acquireMany, fetch, heartbeat }).toEqual({ acquireMany: 1, fetch: 1, heartbeat: undefined });
  });

  it("keeps it while the run's object sleeps and wakes, without a call of its Worker", async () => {
    const run = await openRun();
    const answer = await early(async () => {
      const query = run.query({ prompt: "p", model: "up/key/slept/latch/slept" });
      await untilInFlight("slept", 1);
      await untilSockets(run, 1);
      for (let wakes = 0; wakes < 2; wakes += 1) {
        await evict(run.object);
        await age(run, FOUND_LEASE_TTL_MS + 1);
      }
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 1 });
      // Nothing holds the object awake, and nothing must be confirmed.
      await expect.poll(() => watched(run.id).timers.size).toBe(0);
      await openLatch("slept");
      return query;
    });
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expect(watched(run.id).calls["fetch"]).toBe(1);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("opens its socket again after a crash of the run's object, and keeps its lease by it", async () => {
    const run = await openRun();
    const answer = await early(async () => {
      const query = run.query({ prompt: "p", model: "up/key/reopened/latch/reopened" });
      await untilInFlight("reopened", 1);
      await untilSockets(run, 1);
      await crash(run.object);
      await untilSockets(run, 2);
      await age(run, 3 * LEASE_TTL_MS);
      await openLatch("reopened");
      return query;
    });
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expect((await upstreamStats("reopened")).requests).toBe(1);
    expectSettled(await run.budget(), answer.usage.cost);
  });
});

describe("a lease", () => {
  it("whose Worker is lost with its socket ends after the time of a reconnect, and is charged", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const attemptId = await acquireOne(run);
    const socket = await hold(run, { kind: "call", callId: "call", attemptId });
    socket.close(4_000);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    skipTime(FOUND_LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    expect((await run.budget()).calls).toMatchObject({ spent: 1, reserved: 0 });
  });

  it("whose Worker closes its socket because it is done waits for its settlement", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const attemptId = await acquireOne(run);
    const socket = await hold(run, { kind: "call", callId: "call", attemptId });
    socket.close(DONE_CODE);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    await age(run, FOUND_LEASE_TTL_MS + 1);
    expect(await run.object.settle({ attemptId, outcome: SUCCESS, stored: null })).toMatchObject({ known: true });
  });

  it("that is not in flight any more is refused: its Worker is sent the end of its work", async () => {
    const run = await openRun();
    const signals = signalsOf(await hold(run, { kind: "call", callId: "gone", attemptId: "gone.1" }));
    await expect.poll(signals).toEqual([{ type: "abort" }]);
  });

  it("that is cancelled or settled is signalled to the socket that holds it, and to no other", async () => {
    const run = await openRun({ max_parallel: 2 });
    const attemptId = await acquireOne(run);
    const held = signalsOf(await hold(run, { kind: "call", callId: "call", attemptId }));
    await run.object.acquire(acquireRequest("other", factsOf("p", "up/x")));
    const other = signalsOf(await hold(run, { kind: "call", callId: "other", attemptId: "other.1" }));
    await run.object.settle({ attemptId, outcome: SUCCESS, stored: null });
    await expect.poll(held).toEqual([{ type: "settled" }]);
    await run.object.end("cancelled");
    await expect.poll(other).toEqual([{ type: "abort" }]);
    expect(held()).toEqual([{ type: "settled" }]);
  });
});

describe("a query whose Worker lives, but has lost its lease", () => {
  /** Sends a query whose socket opens only once its lease is over. Resolves with the answer, and what was reserved for it. */
  async function losing(run: TestRun, key: string, rules: object) {
    const opening = delaySockets();
    try {
      return await early(async () => {
        const body = { prompt: "p", model: `up/key/${key}/latch/${key}`, max_tokens: 50, ...rules };
        const ended = run.tryQuery(body);
        await untilInFlight(key, 1);
        await expect.poll(() => opening.requests).toBe(1);
        const { reserved } = (await run.budget()).usd;
        await age(run, LOST_CALL_MS);
        expect((await run.budget()).usd).toMatchObject({ reserved: 0, spent: reserved });
        opening.mayOpen = true;
        return { ended, reserved };
      });
    } finally {
      opening.restore();
    }
  }

  it("fails as lost if on_lost is fail, and shows what the run has charged", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const { ended, reserved } = await losing(run, "lost-fail", { on_lost: "fail" });
    const lost = { code: "upstream_error", status: null, retryable: true, attempts: 1, charged_usd: reserved };
    expect(await ended).toMatchObject({ status: 502, error: lost });
    expect(reserved).toBeGreaterThan(0);
    expectSettled(await run.budget(), reserved);
  });

  it("is made again by default, and its answer shows the charge of both attempts", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const { ended, reserved } = await losing(run, "lost-again", {});
    await expect.poll(async () => (await upstreamStats("lost-again")).requests).toBe(2);
    await openLatch("lost-again");
    const { answer } = await ended;
    expect(answer).toMatchObject({ text: "p", attempts: 2 });
    expect(answer?.usage.cost).toBeGreaterThan(reserved);
    expectSettled(await run.budget(), answer?.usage.cost ?? 0);
  });

  it.each(["/query", "/v1/chat/completions"])(
    "fails as cancelled on %s if its run was cancelled, and shows what the run has charged",
    async (path) => {
      const run = await openRun({ budget: { usd: 1 } });
      const key = `ended-${path === "/query" ? "query" : "chat"}`;
      const asked = path === "/query" ? { prompt: "p" } : { messages: [{ role: "user", content: "p" }] };
      const { response, reserved } = await early(async () => {
        const ended = run.post(path, { ...asked, model: `up/key/${key}/latch/${key}`, max_tokens: 50 });
        await untilInFlight(key, 1);
        await untilSockets(run, 1);
        const { usd } = await run.budget();
        await run.object.end("cancelled");
        return { response: await ended, reserved: usd.reserved };
      });
      const cancelled = { code: "cancelled", message: "the run was cancelled", attempts: 1, charged_usd: reserved };
      expect([response.status, await response.json()]).toMatchObject([409, { error: cancelled }]);
      expect(reserved).toBeGreaterThan(0);
    },
  );
});

describe("callers that wait", () => {
  it("for a permit get it at their socket, though an earlier attempt of the call opens its own late and closes it", async () => {
    const run = await openRun({ max_parallel: 1 });
    const running = await acquireOne(run);
    const request = acquireRequest("queued", factsOf("p", "up/x"));
    expect((await run.object.acquire(request)).ok).toBe("wait");
    const waiting = signalsOf(await hold(run, { kind: "call", callId: "queued", attemptId: null }));
    const late = await hold(run, { kind: "call", callId: "queued", attemptId: "queued.1" });
    late.close(DONE_CODE);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    await run.object.settle({ attemptId: running, outcome: SUCCESS, stored: null });
    await expect.poll(waiting).toEqual([expect.objectContaining({ type: "reply" })]);
  });

  it(
    "for permits hold no call open and set no timer, and lose nothing when the run's object sleeps",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
      const asked = prompts(16);
      const answers = await early(async () => {
        const queries = asked.map((prompt) => run.query({ prompt, model: "up/key/parked/latch/parked" }));
        await untilInFlight("parked", 4);
        // Four hold their permits, twelve wait for one.
        await untilSockets(run, 16);
        await expect.poll(() => watched(run.id).timers.size).toBe(0);
        await evict(run.object);
        // What wakes it learns of the calls that wait by their sockets alone.
        await letThrough("parked", 4);
        await expect.poll(async () => (await upstreamStats("parked")).requests).toBe(8);
        // The other eight wait once more, at the sockets that they have.
        await expect.poll(() => watched(run.id).timers.size).toBe(0);
        await openLatch("parked");
        return Promise.all(queries);
      });
      expect(answers.map(({ text, attempts }) => [text, attempts])).toEqual(asked.map((prompt) => [prompt, 1]));
      expect((await upstreamStats("parked")).requests).toBe(16);
      expectSettled(
        await run.budget(),
        answers.reduce((total, { usage }) => total + usage.cost, 0),
      );
      expect((await run.document()).stats).toMatchObject({ total_queries: 16, pending_queries: 0 });
    },
  );

  it("for permits get their refusal over their sockets when the run ends", async () => {
    const run = await openRun({ max_parallel: 1 });
    await acquireOne(run);
    const waiting = run.tryQuery({ prompt: "waits", model: "up/x" });
    await untilSockets(run, 1);
    await run.object.end("closed");
    expect(await waiting).toMatchObject({ status: 409 });
  });

  it("until a deadline are refused by the run's alarm, without a timer", async () => {
    const run = await openRun({ max_parallel: 1 });
    await acquireOne(run);
    const waiting = run.tryQuery({ prompt: "waits", model: "up/x", deadline_ms: 50_000 });
    await untilSockets(run, 1);
    await expect.poll(() => watched(run.id).timers.size).toBe(0);
    await age(run, 50_000);
    expect(await waiting).toMatchObject({ error: { code: "deadline_exceeded" } });
  });

  it("for a group's end hold no call open, and are signalled by an instance that never saw them", async () => {
    const run = await openRun({ max_parallel: 2 });
    const id = await openAsync(run, { prompts: prompts(2), model: "up/key/awaited/latch/awaited" });
    const look = lookAt(run, id, 15_000);
    await untilInFlight("awaited", 2);
    await untilSockets(run, 1);
    await evict(run.object);
    await openLatch("awaited");
    expect(await look).toMatchObject({ status: "completed" });
    expect(watched(run.id).calls["fetch"]).toBe(1);
  });

  it("for slots get each once, with a look only when one has ended", async () => {
    const run = await openRun({ max_parallel: 3 });
    const body = { prompts: prompts(3), model: "up/key/stepwise/latch/stepwise" };
    // Who executes the group learns of slots with its claims: this one finds the group by its key.
    await openAsync(run, body, "stepwise");
    const request = { accept: "application/x-ndjson", headers: { "idempotency-key": "stepwise" } };
    const lines = run.post("/batch", body, request).then((response) => response.text());
    await untilInFlight("stepwise", 3);
    await untilSockets(run, 1);
    const looks = watched(run.id).calls["endedSlots"] ?? 0;
    await letThrough("stepwise", 1);
    // One look at the slot, and one that finds nothing further.
    await expect.poll(() => watched(run.id).calls["endedSlots"]).toBe(looks + 2);
    await openLatch("stepwise");
    expect((await lines).split("\n").filter((line) => line.includes('"type":"slot"'))).toHaveLength(3);
    expect(watched(run.id).calls["fetch"]).toBe(1);
  });
});

describe("a tool call that waits for its permit", () => {
  it("holds no call open and sets no timer, and is called once a permit is free, also if the run's object slept", async () => {
    const run = await openRun({ max_parallel: 1, tools: TOOLS });
    await run.object.acquireTool({ ...TOOL, waitedMs: 0 });
    await hold(run, { kind: "tool", ...TOOL });
    const waiting = run.post("/tool_call", { tool_name: "search", input: {} });
    await untilSockets(run, 2);
    await expect.poll(() => watched(run.id).timers.size).toBe(0);
    await evict(run.object);
    await run.object.endTool(TOOL.callId, null);
    // The tool itself answers what the upstream of the tests answers there: it was called.
    await (await waiting).text();
    await expect.poll(() => watched(run.id).calls["endTool"]).toBe(2);
    expect(await run.object.acquireTool({ ...TOOL, callId: "next", waitedMs: 0 })).toMatchObject({ ok: true });
  });

  it("is refused over its socket when the run ends", async () => {
    const run = await openRun({ max_parallel: 1, tools: TOOLS });
    await run.object.acquireTool({ ...TOOL, waitedMs: 0 });
    const waiting = run.post("/tool_call", { tool_name: "search", input: {} });
    await untilSockets(run, 1);
    await run.object.end("closed");
    expect((await waiting).ok).toBe(false);
    expect(watched(run.id).calls["endTool"]).toBeUndefined();
  });
});

describe("the permit of a tool call that lasts", () => {
  it("is held by its Worker's socket, and by the same socket after the run's object slept", async () => {
    const run = await openRun({ max_parallel: 1, tools: TOOLS });
    await run.object.acquireTool({ ...TOOL, waitedMs: 0 });
    await hold(run, { kind: "tool", ...TOOL });
    await evict(run.object);
    await age(run, 3 * LEASE_TTL_MS);
    await run.object.end("closed");
    expect(await run.object.logPage(0, null)).toMatchObject({ final: false });
    await run.object.endTool(TOOL.callId, null);
    expect(await run.object.logPage(0, null)).toMatchObject({ final: true });
  });

  it("is revoked over its socket when the run is cancelled, also if the run's object slept", async () => {
    const run = await openRun({ max_parallel: 2, tools: TOOLS });
    await run.object.acquireTool({ ...TOOL, waitedMs: 0 });
    const signals = signalsOf(await hold(run, { kind: "tool", ...TOOL }));
    await evict(run.object);
    await run.object.end("cancelled");
    await expect.poll(signals).toEqual([{ type: "abort" }]);
  });

  it("ends after the time of a reconnect if its Worker is lost with its socket", async () => {
    const run = await openRun({ max_parallel: 1, tools: TOOLS });
    await run.object.acquireTool({ ...TOOL, waitedMs: 0 });
    (await hold(run, { kind: "tool", ...TOOL })).close(4_000);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    skipTime(FOUND_LEASE_TTL_MS);
    expect(await run.object.acquireTool({ ...TOOL, callId: "next", waitedMs: 0 })).toMatchObject({ ok: true });
  });
});

describe("a socket that opens only after its owner has ended", () => {
  const model = (name: string): string => `up/key/${name}/latch/${name}`;
  const queried = async (run: TestRun, name: string): Promise<unknown> =>
    run.query({ prompt: "p", model: model(name) });
  const batched = async (run: TestRun, name: string): Promise<unknown> =>
    run.batch({ prompts: prompts(1), model: model(name) });

  it.each([
    ["query", queried],
    ["batch", batched],
  ])("is closed by the Worker of a %s", { tags: ["slow"] }, async (name, send) => {
    const run = await openRun();
    const opening = delaySockets();
    try {
      await early(async () => {
        const ended = send(run, `late-${name}`);
        await expect.poll(() => opening.requests).toBe(1);
        await openLatch(`late-${name}`);
        await ended;
        // By now the request of the owner has ended, if nothing keeps it. A busy machine makes the test miss that, not fail.
        await scheduler.wait(OWNER_ENDS_MS);
        opening.mayOpen = true;
        await expect.poll(() => opening.opened).toBe(1);
      });
    } finally {
      opening.restore();
    }
    // The object would take the owner for alive, and could not be evicted.
    const count = (): Promise<number> => runInDurableObject(run.object, (_, ctx) => ctx.getWebSockets().length);
    await expect.poll(count).toBe(0);
  });
});

const OWNER_ENDS_MS = 1_000;

/** Makes run objects open sockets only once they may. */
function delaySockets(): { requests: number; opened: number; mayOpen: boolean; restore: () => void } {
  const plain = RunObject.prototype.fetch;
  const restore = (): void => void (RunObject.prototype.fetch = plain);
  const opening = { requests: 0, opened: 0, mayOpen: false, restore };
  const delayed = async function (this: RunObject, request: Request): Promise<Response> {
    opening.requests += 1;
    while (!opening.mayOpen) await scheduler.wait(5);
    const response = plain.call(this, request);
    opening.opened += 1;
    return response;
  };
  Reflect.set(RunObject.prototype, "fetch", delayed);
  return opening;
}

/** Runs `work` with Workers that open their sockets almost at once. */
function early<T>(work: () => Promise<T>): Promise<T> {
  return withTimers([CALL_SOCKET_AFTER_MS], 10, work);
}

async function untilSockets(run: TestRun, count: number): Promise<void> {
  await expect.poll(() => watched(run.id).calls["fetch"], { interval: 5 }).toBe(count);
}

/** Puts the time forward and rings the run's alarm. */
async function age(run: TestRun, ms: number): Promise<void> {
  skipTime(ms);
  await runDurableObjectAlarm(run.object);
}
