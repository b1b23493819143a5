/** Those who follow a run's events get each once and in order, and cost the run nothing while nothing happens. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { FOLLOWERS_PER_TOKEN_MAX, LOG_READERS_PER_TOKEN_MAX } from "../../src/limits.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { crash, evict } from "../support/objects-direct.ts";
import { StreamFollower } from "../support/objects-events.ts";
import { alarmOf, openAsync } from "../support/objects-group.ts";
import { expectGapless, linesOf, logOf, ofType, type LogLine } from "../support/objects-log.ts";
import { openLatch, openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a follower", () => {
  it(
    "gets every event once and in order while groups run, and its stream ends when the run has",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 8 });
      const follower = await StreamFollower.connect(run);
      const model = "up/jitter/40/status/503/first/1/percent/20";
      await Promise.all([
        run.batch({ prompts: prompts(30), model }),
        run.batch({ prompts: prompts(20, "other"), model }),
        ...prompts(10, "alone").map((prompt) => run.query({ prompt, model })),
      ]);
      await run.send("POST", `/runs/${run.id}/close`);
      await follower.untilEnded();
      expectGapless(follower.lines);
      expect(ofType(follower.lines, "slot_completed").length).toBe(60);
      expect(follower.lines.at(-1)?.event_type).toBe("run_closed");
      expect(follower.lines).toEqual(await logOf(run));
    },
  );

  it("gets the first event after a silence at once", async () => {
    const run = await openRun();
    const follower = await StreamFollower.connect(run);
    await follower.until("run_opened");
    await run.query({ prompt: "one" });
    await follower.until("slot_completed");
    await expectStill(run);
    await run.query({ prompt: "two" });
    await follower.until("slot_completed", 2);
    expectGapless(follower.lines);
    await follower.disconnect();
  });

  it("that resumes after an event gets what follows it, and nothing before", async () => {
    const run = await openRun({ max_parallel: 4 });
    const first = await StreamFollower.connect(run);
    const batch = run.batch({ prompts: prompts(20), model: "up/delay/40" });
    await first.until("slot_completed", 5);
    await first.disconnect();
    const second = await StreamFollower.connect(run, first.last);
    await batch;
    await second.until("group_completed");
    expectGapless([...first.lines, ...second.lines]);
    await second.disconnect();
  });

  it.each(["hibernates", "loses its sockets", "crashes"])(
    "continues without gap or repeat if the run %s",
    { tags: ["slow"] },
    async (how) => {
      const run = await openRun({ max_parallel: 6 });
      const follower = await StreamFollower.connect(run);
      await follower.until("run_opened");
      const connections = 1;
      await expect.poll(() => watched(run.id).calls["fetch"]).toBe(connections);
      await expectStill(run);
      if (how === "crashes") await crash(run.object);
      else await evict(run.object, { webSockets: how === "hibernates" ? "hibernate" : "close" });
      // Without a client that waits, whose socket would count as well.
      await openAsync(run, { prompts: prompts(6) });
      await follower.until("group_completed");
      // A socket that hibernates with its object still rings when the object is back.
      if (how === "hibernates") expect(watched(run.id).calls["fetch"]).toBe(connections);
      else await expect.poll(() => watched(run.id).calls["fetch"]).toBe(connections + 1);
      await run.query({ prompt: "one more" });
      await follower.until("slot_completed", 7);
      expectGapless(follower.lines);
      await follower.disconnect();
    },
  );

  it("continues without gap or repeat if the run crashes repeatedly in the middle of a group", async () => {
    const run = await openRun({ max_parallel: 6 });
    const follower = await StreamFollower.connect(run);
    // The last call waits at a latch, so that the group outlives the crashes however fast the others are.
    const items = [
      ...prompts(35).map((prompt) => ({ prompt, model: "up/key/followed-deaths/delay/60" })),
      { prompt: "last", model: "up/key/followed-deaths/latch/followed-end" },
    ];
    await openAsync(run, { items });
    for (let round = 0; round < 3; round++) {
      const requests = async (): Promise<number> => (await upstreamStats("followed-deaths")).requests;
      await expect.poll(requests).toBeGreaterThanOrEqual(6 * (round + 1));
      if (round === 1) await run.object.budget().then(() => evict(run.object));
      else await crash(run.object);
    }
    await openLatch("followed-end");
    await follower.until("group_completed");
    expectGapless(follower.lines);
    expect(ofType(follower.lines, "slot_completed").length).toBe(36);
    expect(follower.lines).toEqual(await logOf(run));
    await follower.disconnect();
  });

  it("over a WebSocket gets the same lines as messages, and a normal close at the end", async () => {
    const run = await openRun();
    const socket = await openSocket(run, 0);
    const batch = await run.batch({ prompts: prompts(4) });
    expect(batch.status).toBe("completed");
    await run.send("POST", `/runs/${run.id}/close`);
    await expect.poll(() => socket.closed).toBe(1000);
    expect(socket.lines).toEqual(await logOf(run));
    const resumed = await openSocket(run, 5);
    await expect.poll(() => resumed.closed).toBe(1000);
    expectGapless(resumed.lines, 5);
  });

  it("of a run that ended long ago gets the whole history and the end", async () => {
    const run = await openRun();
    await run.batch({ prompts: prompts(3) });
    await run.send("POST", `/runs/${run.id}/close`);
    await evict(run.object);
    const follower = await StreamFollower.connect(run);
    await follower.untilEnded();
    expect(follower.lines).toEqual(await logOf(run));
    expectGapless(follower.lines);
  });
});

describe("an idle run", () => {
  it("has no timer, even with a follower, and no alarm before its own end", async () => {
    const run = await openRun();
    const follower = await StreamFollower.connect(run);
    await run.batch({ prompts: prompts(6) });
    await follower.until("group_completed");
    await run.query({ prompt: "one" });
    await follower.until("slot_completed", 7);
    await expectStill(run);
    // The alarm that was set for the leases finds nothing to do, and is set to the run's end.
    await runDurableObjectAlarm(run.object);
    expect(await alarmOf(run)).toBe(Date.parse((await run.document()).expires_at));
    await follower.disconnect();
  });

  it("that has ended has only the alarm of its retention", async () => {
    const run = await openRun({ retention_s: 3_600 });
    await run.batch({ prompts: prompts(6) });
    await run.query({ prompt: "one" });
    const beforeMs = Date.now();
    await run.send("POST", `/runs/${run.id}/close`);
    const afterMs = Date.now();
    await expectStill(run);
    await runDurableObjectAlarm(run.object);
    const alarm = (await alarmOf(run)) ?? 0;
    expect(alarm).toBeGreaterThanOrEqual(beforeMs + 3_600_000);
    expect(alarm).toBeLessThanOrEqual(afterMs + 3_600_000);
    await expectStill(run);
    const before = (await run.object.rowsWritten()).all;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await run.object.rowsWritten()).all).toBe(before);
  });
});

describe("followers of a run", () => {
  it("are so many for each token, and another token or the operator is not shut out by them", async () => {
    const run = await openRun({ max_depth: 2 });
    const [parent, child] = [run.id, "run_of_another_token"];
    const sockets = await Promise.all(Array.from({ length: FOLLOWERS_PER_TOKEN_MAX }, () => ring(run, parent)));
    expect(sockets.every((socket) => socket !== null)).toBe(true);
    expect(await ring(run, parent)).toBeNull();
    expect(await ring(run, child)).not.toBeNull();
    const follower = await StreamFollower.connect(run);
    await follower.until("run_opened");
    await follower.disconnect();
    sockets.pop()?.close(1000);
    await expect.poll(async () => (await ring(run, parent)) !== null).toBe(true);
  });

  it("above the limit are refused with a wait and read nothing, until a place is free", async () => {
    const run = await openRun();
    const sockets = await Promise.all(Array.from({ length: FOLLOWERS_PER_TOKEN_MAX }, () => ring(run, run.id)));
    const pages = (): number => watched(run.id).calls["logPage"] ?? 0;
    const pagesBefore = pages();
    const refused = await follow(run);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    expect(await refused.json()).toMatchObject({ error: { code: "overloaded", retryable: true } });
    // Whether its run may be read; not the log itself.
    expect(pages()).toBe(pagesBefore + 1);
    sockets.pop()?.close(1000);
    await expect.poll(async () => (await follow(run)).status).toBe(200);
  });

  it("get of a large event of a client its facts, its size and its address, where it is whole", async () => {
    const run = await openRun();
    const output = `result: ${"x".repeat(100_000)}`;
    const large = { event_type: "execution_result", output, hasError: true, step: 3 };
    await run.send("POST", "/log", [large, { event_type: "final_result", output: "42" }]);
    const follower = await StreamFollower.connect(run);
    await follower.until("final_result");
    const [line] = ofType(follower.lines, "execution_result");
    expect(line).not.toHaveProperty("output");
    expect(line).toMatchObject({ hasError: true, step: 3, head: output.slice(0, 600), seq: 2 });
    expect(line).toMatchObject({
      bytes: JSON.stringify(large).length,
      event_url: `/runs/${run.id}/log?after=1&limit=1`,
    });
    const whole = await run.send("GET", String(line?.["event_url"]));
    expect(linesOf(await whole.text())).toEqual([expect.objectContaining({ seq: 2, ...large })]);
    expect(ofType(follower.lines, "final_result")).toEqual([expect.objectContaining({ output: "42" })]);
    await follower.disconnect();
  });

  it("get every event of a row that is larger than a page, also from its middle", { tags: ["slow"] }, async () => {
    const run = await openRun();
    const events = Array.from({ length: 60 }, (_, step) => ({ event_type: "mine", step, output: "x".repeat(8_000) }));
    await run.send("POST", "/log", events);
    for (const after of [0, 1, 20, 60]) {
      const follower = await StreamFollower.connect(run, after);
      await expect.poll(() => follower.last).toBe(61);
      expectGapless(follower.lines, after);
      expect(follower.lines).toEqual((await logOf(run)).slice(after));
      await follower.disconnect();
    }
  });
});

describe("readers of the log so far", () => {
  it("are so many for each token, and shut out neither its followers nor another token", async () => {
    const run = await openRun({ max_depth: 2 });
    const [parent, child] = [run.id, "run_of_another_token"];
    const sockets = await takeReaders(run);
    expect(sockets.every((socket) => socket !== null)).toBe(true);
    expect(await ring(run, parent, "reader")).toBeNull();
    expect(await ring(run, child, "reader")).not.toBeNull();
    expect(await ring(run, parent)).not.toBeNull();
    sockets.pop()?.close(1000);
    await expect.poll(async () => (await ring(run, parent, "reader")) !== null).toBe(true);
  });

  it.each(["log", "trace.json", "page.html"])(
    "above the limit are refused at %s with a wait, while the operator reads; one who leaves makes room",
    async (name) => {
      const run = await openRun();
      const path = `/runs/${run.id}/${name}`;
      const sockets = await takeReaders(run);
      const refused = await run.send("GET", path);
      expect(refused.status).toBe(503);
      expect(refused.headers.get("retry-after")).not.toBeNull();
      expect(await refused.json()).toMatchObject({ error: { code: "overloaded", retryable: true } });
      const headers = { authorization: `Bearer ${ADMIN_KEY}` };
      const operators = await exports.default.fetch(`http://fanout.test${path}`, { headers });
      expect([operators.status, await operators.text()]).toEqual([200, expect.stringContaining("run_opened")]);
      sockets.pop()?.close(1000);
      await expect.poll(async () => (await read(run, path)).status).toBe(200);
    },
  );

  it("leave their places when they have read to the end, or stop; HEAD takes none", { tags: ["slow"] }, async () => {
    const run = await openRun();
    const output = "x".repeat(100_000);
    await run.send(
      "POST",
      "/log",
      Array.from({ length: 5 }, () => ({ event_type: "mine", output })),
    );
    // Each of these more often than there are places.
    for (let reads = 0; reads <= LOG_READERS_PER_TOKEN_MAX; reads += 1) {
      const heads = await run.send("HEAD", `/runs/${run.id}/log`);
      expect([heads.status, heads.headers.get("content-type")]).toEqual([200, "application/x-ndjson; charset=utf-8"]);
    }
    for (let reads = 0; reads <= LOG_READERS_PER_TOKEN_MAX; reads += 1) {
      await expect.poll(async () => (await read(run, `/runs/${run.id}/log`)).text.length).toBeGreaterThan(500_000);
      await expect.poll(() => leave(run)).toBe(200);
    }
  });
});

/** Waits until no timer of the run's object is set. */
async function expectStill(run: TestRun): Promise<void> {
  await expect.poll(() => watched(run.id).timers.size).toBe(0);
}

/** All places of readers with the run's own token. */
function takeReaders(run: TestRun): Promise<(WebSocket | null)[]> {
  return Promise.all(Array.from({ length: LOG_READERS_PER_TOKEN_MAX }, () => ring(run, run.id, "reader")));
}

/** Reads a path with the run's token to the end. */
async function read(run: TestRun, path: string): Promise<{ status: number; text: string }> {
  const answer = await run.send("GET", path);
  return { status: answer.status, text: await answer.text() };
}

/** Begins to read the log with the run's token, and leaves. */
async function leave(run: TestRun): Promise<number> {
  const { status, body } = await run.send("GET", `/runs/${run.id}/log`);
  await body?.cancel();
  return status;
}

/** A follower's or reader's socket to the run's object itself, with the token of a run; null where it is refused. */
async function ring(run: TestRun, caller: string, place = "follower"): Promise<WebSocket | null> {
  const headers = { upgrade: "websocket" };
  const { webSocket } = await run.object.fetch(`https://run/follow?place=${place}&caller=${caller}`, { headers });
  webSocket?.accept();
  return webSocket;
}

/** Requests a run's events with its token. */
function follow(run: TestRun): Promise<Response> {
  return run.send("GET", `/runs/${run.id}/events`);
}

/** A client's socket that follows a run after an event. */
async function openSocket(run: TestRun, after: number): Promise<{ lines: LogLine[]; closed: number | null }> {
  const response = await exports.default.fetch(`http://fanout.test/runs/${run.id}/events?after=${after}`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}`, upgrade: "websocket" },
  });
  expect(response.status).toBe(101);
  const seen: { lines: LogLine[]; closed: number | null } = { lines: [], closed: null };
  const socket = response.webSocket;
  socket?.accept();
  socket?.addEventListener("message", ({ data }) => seen.lines.push(...linesOf(String(data))));
  socket?.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  return seen;
}
