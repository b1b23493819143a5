/** Replay in the run object: what is recorded, under concurrency, evictions and crashes, and what it writes. */
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { acquireRequest, crash, evict } from "../support/objects-direct.ts";
import { openAsync, rowCounts } from "../support/objects-group.ts";
import {
  batchAnswerOf,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import type { CallFacts } from "../../src/call.ts";
import { RunObject } from "../../src/index.ts";
import { REPLAYED_PER_TURN_MAX } from "../../src/limits.ts";

const reply = z.looseObject({ text: z.string(), replayed: z.literal(true).optional() });

const RECORDS = { replay: "run", budget: { usd: 1 }, max_parallel: 8 };

async function post(run: TestRun, path: string, body: object, epoch: string): Promise<unknown> {
  const response = await run.post(path, body, { headers: { "x-fanout-epoch": epoch } });
  expect(response.status).toBe(200);
  return response.json();
}

const query = async (run: TestRun, body: object, epoch: string): Promise<z.infer<typeof reply>> =>
  reply.parse(await post(run, "/query", body, epoch));
const batch = async (run: TestRun, body: object, epoch: string): Promise<ReturnType<typeof batchAnswerOf>> =>
  batchAnswerOf(await post(run, "/batch", body, epoch));

const plain = { acquireMany: RunObject.prototype.acquireMany, takeAnswers: RunObject.prototype.takeAnswers };
afterEach(() => void Object.assign(RunObject.prototype, plain));

/** What the next call that `work` makes says of itself. */
async function factsOfNext(work: () => Promise<unknown>): Promise<CallFacts> {
  let facts: CallFacts | null = null;
  RunObject.prototype.acquireMany = function (this: RunObject, ...args) {
    facts ??= args[0][0]?.facts ?? null;
    return plain.acquireMany.apply(this, args);
  };
  await work();
  if (facts === null) throw new Error("no call was made");
  return facts;
}

/** Counts how often a run has given answers to a child. */
function watchGiven(): () => number {
  let given = 0;
  RunObject.prototype.takeAnswers = async function (this: RunObject, ...args) {
    const answers = await plain.takeAnswers.apply(this, args);
    given += 1;
    return answers;
  };
  return () => given;
}

describe("a run that records", () => {
  it("adds no row to a call of a group, recorded or replayed", { tags: ["slow"] }, async () => {
    const rows = async (run: TestRun, epoch: string): Promise<number> => {
      const before = (await run.object.rowsWritten()).all;
      const answer = await batch(run, { prompts: prompts(256), model: "sim/echo" }, epoch);
      expect(answer.status).toBe("completed");
      return (await run.object.rowsWritten()).all - before;
    };
    const plain = await openRun({ max_parallel: 64 });
    const run = await openRun({ replay: "run", max_parallel: 64 });
    const [without, recording, replaying] = [await rows(plain, "a"), await rows(run, "a"), await rows(run, "b")];
    // Turns differ from run to run, and each writes its shard and its share of the log.
    expect(recording).toBeLessThanOrEqual(without + 64);
    expect(replaying).toBeLessThanOrEqual(without);
    expect(await rowCounts(run)).toMatchObject({ slot: 512 });
  });

  it("writes one row for all single calls that end in one turn, and no text twice", async () => {
    const run = await openRun(RECORDS);
    await Promise.all(prompts(16).map((prompt) => query(run, { prompt, model: "sim/echo" }, "a")));
    const { tape = 0 } = await rowCounts(run);
    expect(tape).toBeLessThanOrEqual(16);
    await Promise.all(prompts(16).map((prompt) => query(run, { prompt, model: "sim/echo" }, "b")));
    expect((await rowCounts(run)).tape).toBeLessThanOrEqual(2 * 16);
  });

  it("gives each of many concurrent equal calls another answer, and each answer once", async () => {
    const run = await openRun({ ...RECORDS, max_parallel: 64 });
    const body = { prompt: "same", model: "sim/echo" };
    await Promise.all(prompts(20).map(() => query(run, body, "a")));
    const { spent } = (await run.budget()).calls;
    const answers = await Promise.all(prompts(30).map(() => query(run, body, "b")));
    expect(answers.filter(({ replayed }) => replayed === true)).toHaveLength(20);
    expect((await run.budget()).calls.spent).toBe(spent + 10);
  });

  it.each([
    ["is evicted", (run: TestRun) => evict(run.object)],
    ["crashes", (run: TestRun) => crash(run.object)],
  ])("knows after it %s what was answered, and what each epoch has had", async (_, restart) => {
    const run = await openRun(RECORDS);
    const model = "up/key/restarted";
    await batch(run, { prompts: ["a", "a", "b"], model }, "one");
    await query(run, { prompt: "c", model }, "one");
    await query(run, { prompt: "c", model }, "one");
    await query(run, { prompt: "c", model }, "two");
    await restart(run);
    const { requests } = await upstreamStats("restarted");
    expect(await query(run, { prompt: "c", model }, "two")).toMatchObject({ replayed: true });
    expect((await query(run, { prompt: "c", model }, "two")).replayed).toBeUndefined();
    expect((await query(run, { prompt: "a", model }, "one")).replayed).toBeUndefined();
    expect(await batch(run, { prompts: ["b", "a", "c", "a"], model }, "three")).toMatchObject({ replayed: 4 });
    expect((await upstreamStats("restarted")).requests).toBe(requests + 2);
  });

  it("pays once for a batch that continues after its client was killed and is sent again, but for what was in flight", async () => {
    const run = await openRun({ ...RECORDS, max_parallel: 4 });
    const body = { prompts: prompts(40), model: "up/key/overlap/latch/overlap" };
    const client = new AbortController();
    const headers = { "x-fanout-epoch": "killed" };
    const left = run.post("/batch", body, { signal: client.signal, headers }).then((response) => response.text());
    await untilInFlight("overlap", 4);
    client.abort();
    await left.catch(() => null);
    const again = batch(run, body, "again");
    await expect.poll(async () => (await rowCounts(run)).grp).toBe(2);
    await openLatch("overlap");
    expect(await again).toMatchObject({ status: "completed", results: prompts(40) });
    expect((await upstreamStats("overlap")).requests).toBeLessThanOrEqual(44);
  });

  it("replays a batch that is larger than what one turn ends", { tags: ["slow"], ...MANY_CALLS }, async () => {
    const count = REPLAYED_PER_TURN_MAX * 2 + 100;
    const run = await openRun({ replay: "run", max_parallel: 512 });
    const body = { prompts: prompts(count), model: "sim/echo" };
    await batch(run, body, "one");
    const again = await batch(run, body, "two");
    expect(again).toMatchObject({ status: "completed", replayed: count, usage: { cost: 0 } });
    expect(again.results).toEqual(prompts(count));
  });

  it("replays an async batch without an executor", async () => {
    const run = await openRun(RECORDS);
    await batch(run, { prompts: ["x", "y"], model: "sim/echo" }, "one");
    // Requests without an epoch belong to another one than these.
    const id = await openAsync(run, { prompts: ["y", "x"], model: "sim/echo" });
    const response = await run.send("GET", `/groups/${id}?wait_ms=20000`);
    expect(await response.json()).toMatchObject({ status: "completed", results: ["y", "x"], replayed: 2 });
  });

  it.each([
    ["is evicted", (run: TestRun) => evict(run.object)],
    ["crashes", (run: TestRun) => crash(run.object)],
  ])("gives its children each answer once in an epoch, also after it %s", async (_, restart) => {
    const run = await openRun(RECORDS);
    const body = { prompt: "shared", model: "sim/echo" };
    await query(run, body, "one");
    const child = await run.openChild();
    const other = await run.openChild();
    expect((await query(child, body, "two")).replayed).toBe(true);
    await restart(run);
    expect((await query(other, body, "two")).replayed).toBeUndefined();
    expect((await query(run, body, "two")).replayed).toBeUndefined();
    expect((await query(other, body, "three")).replayed).toBe(true);
  });

  it("gives concurrent calls of its children as many answers as it has", async () => {
    const run = await openRun({ ...RECORDS, max_parallel: 64 });
    const body = { prompt: "same", model: "sim/echo" };
    await Promise.all(prompts(12).map(() => query(run, body, "one")));
    const children = await Promise.all(prompts(4).map(() => run.openChild({ budget: { usd: 0.01 } })));
    const answers = await Promise.all(children.flatMap((child) => prompts(5).map(() => query(child, body, "two"))));
    expect(answers.filter(({ replayed }) => replayed === true)).toHaveLength(12);
  });

  it("gives equal calls of a child an answer each, whichever of them takes the first that comes", async () => {
    const run = await openRun(RECORDS);
    const body = { prompt: "same", model: "sim/echo" };
    await Promise.all(prompts(3).map(() => query(run, body, "one")));
    const facts = await factsOfNext(async () => query(await run.openChild(), body, "two"));
    const child = await run.openChild();
    const request = (callId: string) => ({ ...acquireRequest(callId, facts), epoch: "three" });
    const given = watchGiven();
    expect(await child.object.acquireMany([request("a")], [])).toEqual([{ ok: "wait" }]);
    await expect.poll(given).toBe(1);
    await child.object.acquireMany([], []);
    // It requests its answer once the other's request has brought one.
    expect(await child.object.acquireMany([request("b")], [])).toMatchObject([{ ok: "replayed" }]);
    expect(await child.object.acquire(request("a"))).toMatchObject({ ok: "replayed" });
    expect(given()).toBeLessThanOrEqual(3);
  });

  it("keeps long answers of groups whole", async () => {
    const run = await openRun({ replay: "run" });
    const prompt = "é😀".repeat(200_000);
    await batch(run, { prompts: [prompt], model: "sim/echo" }, "one");
    const again = await batch(run, { prompts: [prompt], model: "sim/echo" }, "two");
    expect(again).toMatchObject({ replayed: 1 });
    expect(again.results[0] === prompt).toBe(true);
  });
});
