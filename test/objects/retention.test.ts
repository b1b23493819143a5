/** A run that has ended is kept for its retention, and then deleted completely. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { RunObject } from "../../src/index.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireRequest, evict, factsOf, openingOf, pagesOf } from "../support/objects-direct.ts";
import { StreamFollower } from "../support/objects-events.ts";
import { alarmOf, openAsync, rowCounts } from "../support/objects-group.ts";
import { logOf } from "../support/objects-log.ts";
import {
  asOperator,
  listRuns,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  type TestRun,
} from "../support/objects-run.ts";
import { ring, ringUntil } from "../support/objects-tree.ts";

const KEPT_S = 600;

describe("a run that has ended", () => {
  it("is kept with its answers and its log for its whole retention", async () => {
    const run = await endedRun();
    skipTime((KEPT_S - 5) * 1_000);
    await runDurableObjectAlarm(run.object);
    expect((await run.object.results(1, 0)).map(({ text }) => text)).toEqual(prompts(3));
    expect((await logOf(run)).at(-1)?.event_type).toBe("run_closed");
    expect((await asOperator("GET", `/runs/${run.id}`)).status).toBe(200);
    expect((await listRuns("limit=100")).ids).toContain(run.id);
  });

  it.each(["the instance that ended it", "the next one"])("is deleted completely after that, by %s", async (who) => {
    const run = await endedRun();
    if (who === "the next one") await evict(run.object);
    skipTime(KEPT_S * 1_000);
    await runDurableObjectAlarm(run.object);
    await expectNothing(run);
    expect((await listRuns("limit=100")).ids).not.toContain(run.id);
    expect((await asOperator("GET", `/runs/${run.id}`)).status).toBe(404);
    expect((await asOperator("GET", `/runs/${run.id}/log`)).status).toBe(404);
  });

  it("has a token that after that finds nothing, and creates nothing", async () => {
    const run = await endedRun();
    skipTime(KEPT_S * 1_000);
    await runDurableObjectAlarm(run.object);
    for (const path of [`/run`, `/runs/${run.id}`, `/runs/${run.id}/log`, `/runs/${run.id}/usage`]) {
      expect([path, (await run.send("GET", path)).status]).toEqual([path, 404]);
    }
    for (const status of [
      (await run.tryQuery({ prompt: "p" })).status,
      (await run.post("/batch", { prompts: ["p"] })).status,
      (await run.post(`/runs/${run.id}/log`, { event_type: "note" })).status,
      (await run.send("DELETE", `/runs/${run.id}`)).status,
      (await run.post("/runs", {})).status,
    ]) {
      expect([401, 404]).toContain(status);
    }
    await expectNothing(run);
  });

  it("closes the streams of its followers", async () => {
    const run = await openRun({ retention_s: KEPT_S });
    const follower = await StreamFollower.connect(run);
    await follower.until("run_opened");
    await run.send("POST", `/runs/${run.id}/close`);
    await follower.untilEnded();
    skipTime(KEPT_S * 1_000);
    await runDurableObjectAlarm(run.object);
    await expectNothing(run);
  });

  it("by its expiry is deleted one retention later, even without any request", async () => {
    const run = await openRun({ retention_s: KEPT_S, expires_in_s: 60 });
    await run.query({ prompt: "one" });
    skipTime(60_000);
    await runDurableObjectAlarm(run.object);
    expect((await run.object.document(null))?.status).toBe("expired");
    skipTime((KEPT_S - 5) * 1_000);
    await runDurableObjectAlarm(run.object);
    expect(await run.object.document(null)).not.toBeNull();
    skipTime(5_000);
    await runDurableObjectAlarm(run.object);
    await expectNothing(run);
  });

  it("is not deleted while its calls are in flight", async () => {
    const run = await openRun({ retention_s: 1 });
    await openAsync(run, { prompts: prompts(2), model: "up/key/kept/latch/kept", concurrency: 2 });
    await untilInFlight("kept", 2);
    await run.object.end("closed");
    skipTime(2_000);
    await ring(run.object);
    expect((await run.object.waitGroup(1, 0))?.status).toBe("running");
    await openLatch("kept");
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    await ringUntil([run], async () => (await run.object.document(null)) === null);
    await expectNothing(run);
  });

  it("is not deleted before its parent has its report", async () => {
    const parent = await openRun({ budget: { usd: 1 } });
    const child = await parent.openChild({ budget: { usd: 0.5 }, retention_s: 1 });
    await child.query({ prompt: "one" });
    const plain = RunObject.prototype.childEnded;
    RunObject.prototype.childEnded = () => Promise.reject(new Error("the test loses every report"));
    try {
      await child.object.end("closed");
      skipTime(2_000);
      await ring(child.object);
      expect(await child.object.document(null)).not.toBeNull();
      expect((await parent.object.budget())?.usd.reserved).toBe(0.5);
    } finally {
      RunObject.prototype.childEnded = plain;
    }
    await ringUntil([child], async () => (await child.object.document(null)) === null);
    await expectNothing(child);
    const { usd } = (await parent.object.budget()) ?? {};
    expect(usd?.reserved).toBe(0);
    expect(usd?.spent).toBeGreaterThan(0);
  });

  it("is kept a day by default, and its children as long as it", async () => {
    // Before the first request: the clock of an object is that of its last event.
    const beforeMs = Date.now();
    const run = await openRun();
    const short = await openRun({ retention_s: KEPT_S });
    const child = await short.openChild();
    for (const each of [run, child]) await each.send("POST", `/runs/${each.id}/close`);
    await ring(child.object);
    const afterMs = Date.now();
    const keptMs = async (each: TestRun): Promise<number> => ((await alarmOf(each)) ?? 0) - beforeMs;
    expect(await keptMs(run)).toBeGreaterThanOrEqual(86_400_000);
    expect(await keptMs(run)).toBeLessThanOrEqual(86_400_000 + afterMs - beforeMs);
    expect(await keptMs(child)).toBeGreaterThanOrEqual(KEPT_S * 1_000);
    expect(await keptMs(child)).toBeLessThanOrEqual(KEPT_S * 1_000 + afterMs - beforeMs);
  });
});

describe("a run that was never opened", () => {
  it("stores nothing, whatever is requested", async () => {
    const never = env.RUN.getByName("run_never");
    const { pages, models } = pagesOf(["p"], "up/x");
    await never.document(null);
    await never.budget();
    await never.figures();
    await never.answerSettings();
    await never.endAndWait("closed", null);
    await never.acquire(acquireRequest("call", factsOf("p", "up/x")));
    await never.withdraw("call");
    await never.heartbeat(["call.1"]);
    await never.stagePages("key", pages);
    await never.openGroup(openingOf(1, models), pages);
    await never.cancelGroup(1);
    await never.quote(models, pages);
    await never.waitGroup(1, 10);
    await never.endedSlots(1, null, 10);
    await never.results(1, 0);
    await never.logPage(0, null);
    await never.appendLog([{ json: '{"event_type":"note"}', parallelGroupId: null }], null);
    await never.usage(null, true);
    await never.resetStats(null);
    await never.flushWindow(null);
    expect((await never.fetch("https://run/follow", { headers: { upgrade: "websocket" } })).status).toBe(503);
    const stored = await runInDurableObject<RunObject, unknown[]>(never, async (_, { storage }) => [
      storage.sql.exec("SELECT name FROM sqlite_master").toArray(),
      await storage.getAlarm(),
    ]);
    expect(stored).toEqual([[], null]);
  });
});

/** A run with a batch of three and its log, closed just now. */
async function endedRun(): Promise<TestRun> {
  const run = await openRun({ retention_s: KEPT_S });
  await run.batch({ prompts: prompts(3) });
  await run.post(`/runs/${run.id}/log`, { event_type: "final_result", output: "42" });
  expect((await run.send("POST", `/runs/${run.id}/close`)).status).toBe(200);
  return run;
}

/** The run's object has no table, and no alarm that would wake it. */
async function expectNothing(run: TestRun): Promise<void> {
  expect(await rowCounts(run)).toEqual({});
  expect(await alarmOf(run)).toBeNull();
}
