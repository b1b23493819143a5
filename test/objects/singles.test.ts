/** Stored single calls have one row each, and are read like groups: whenever they come back, and whichever version stored them. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { RunObject } from "../../src/index.ts";
import { CARRIED_CHARS_MAX, CARRIED_SHARDS_MAX, OPENINGS_RECALLED_MS, SINGLE_CHARS_MAX } from "../../src/limits.ts";
import type { Settlement } from "../../src/objects/methods/groups.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireOne, crash, evict, openUnwatched, SUCCESS } from "../support/objects-direct.ts";
import { expectAtRest, keyed, openAsync, rowCounts } from "../support/objects-group.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { letThrough, openLatch, openRun, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";

const body = (model: string, prompt = "one") => ({ prompt, model: `up/${model}` });

describe("a query under an Idempotency-Key", () => {
  it("has one row, and is answered from it by an instance that has only that", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const first = await keyed(run, "k", "/query", body("key/one-row"));
    expect(first).toMatchObject({ status: 200, json: { text: "one" } });
    expect(await rowCounts(run)).toMatchObject({ single: 1, grp: 0, page: 0, named: 0, slot: 0 });
    await crash(run.object);
    expect(await keyed(run, "k", "/query", body("key/one-row"))).toEqual({ ...first, replayed: true });
    expect((await upstreamStats("one-row")).requests).toBe(1);
    await expectAtRest(run);
  });

  it("is a conflict for another body, before and after a restart, and leaves no row", async () => {
    const run = await openRun();
    await keyed(run, "k", "/query", body("key/other-body"));
    const stored = await rowCounts(run);
    for (const restart of [() => undefined, () => crash(run.object)]) {
      await restart();
      for (const [path, other] of [
        ["/query", body("key/other-body", "two")],
        ["/batch", { prompts: ["one"], model: "up/key/other-body" }],
      ] as const)
        expect(await keyed(run, "k", path, other)).toMatchObject({
          status: 409,
          json: { error: { code: "idempotency_conflict" } },
        });
    }
    expect(await rowCounts(run)).toEqual(stored);
    expect((await upstreamStats("other-body")).sends).toEqual({ one: 1 });
  });

  it(
    "waits for a permit like others, however many wait: 400 at once are all answered",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ max_parallel: 4 });
      const request = (each: number) => body("key/many-keys/latch/many-keys", `p${each}`);
      const all = Array.from({ length: 400 }, (_, each) => keyed(run, `k${each}`, "/query", request(each)));
      await expect.poll(async () => (await run.document()).stats.pending_queries, MANY_CALLS).toBe(400);
      // They take no room of batches.
      await openAsync(run, { prompts: ["b"], model: "up/key/many-keys" });
      await openLatch("many-keys");
      const answers = await Promise.all(all);
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      await expect.poll(async () => (await upstreamStats("many-keys")).requests).toBe(401);
      await expectAtRest(run);
    },
  );

  it("that is sent again while it runs, after its run has restarted, is made once", async () => {
    const run = await openRun();
    const request = body("key/restarted/latch/restarted");
    const first = keyed(run, "k", "/query", request);
    await untilInFlight("restarted", 1);
    await crash(run.object);
    const second = keyed(run, "k", "/query", request);
    await openLatch("restarted");
    const [one, again] = await Promise.all([first, second]);
    expect(one).toMatchObject({ status: 200, json: { text: "one" } });
    expect(again).toEqual({ ...one, replayed: true });
    expect((await upstreamStats("restarted")).requests).toBe(1);
    await expectAtRest(run);
  });

  it(
    "keeps what it has reserved through restarts, with or without a newer row of its shard",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ budget: { usd: 1 }, max_parallel: 8 });
      const send = (name: string) => keyed(run, name, "/query", body(`key/${name}/latch/${name}`));
      const reserved = async (): Promise<number> => (await run.budget()).usd.reserved;
      const first = send("reserves-a");
      await untilInFlight("reserves-a", 1);
      const one = await reserved();
      expect(one).toBeGreaterThan(0);
      await crash(run.object);
      expect(await reserved()).toBeCloseTo(one);
      const second = send("reserves-b");
      await untilInFlight("reserves-b", 1);
      await crash(run.object);
      expect(await reserved()).toBeCloseTo(2 * one);
      // Its end writes the shard, which then has the other's lease, too.
      await openLatch("reserves-a");
      expect(await first).toMatchObject({ status: 200 });
      await crash(run.object);
      expect(await reserved()).toBeCloseTo(one);
      await openLatch("reserves-b");
      expect(await second).toMatchObject({ status: 200 });
      await crash(run.object);
      expect(await reserved()).toBe(0);
      for (const key of ["reserves-a", "reserves-b"]) expect((await upstreamStats(key)).requests).toBe(1);
      await expectAtRest(run);
    },
  );

  it("that waits for its next attempt continues in the next instance", { tags: ["slow"] }, async () => {
    const run = await openRun();
    const request = body("key/retried/status/503/first/1/retry-after/1");
    const answer = keyed(run, "k", "/query", request);
    await expect.poll(async () => (await upstreamStats("retried")).requests).toBe(1);
    await expect.poll(() => slotState(run)).toBe("queued");
    await crash(run.object);
    expect(await answer).toMatchObject({ status: 200, json: { text: "one", attempts: 2 } });
    expect((await upstreamStats("retried")).requests).toBe(2);
    await expectAtRest(run);
  });

  it("of a recording run is replayed to another life of the program, also by an instance that has only its row", async () => {
    const run = await openRun({ replay: "run" });
    const life = async (epoch: string): Promise<string> => {
      const headers = { "x-fanout-epoch": epoch, "idempotency-key": `k-${epoch}` };
      return await (await run.post("/query", body("key/recorded-single"), { headers })).text();
    };
    await life("first");
    await crash(run.object);
    expect(await life("second")).toContain('"replayed":true');
    await crash(run.object);
    expect(await life("third")).toContain('"replayed":true');
    expect((await upstreamStats("recorded-single")).requests).toBe(1);
    expect(await rowCounts(run)).toMatchObject({ single: 3, slot: 0 });
  });
});

describe("a single call whose", () => {
  it.each([
    { what: "answer is as long as its row takes", chars: SINGLE_CHARS_MAX, slots: 0 },
    { what: "answer is longer", chars: SINGLE_CHARS_MAX + 1, slots: 1 },
  ])("$what comes back as it was", async ({ chars, slots }) => {
    const run = await openRun();
    const text = '"\u0001漢'.repeat(chars).slice(0, chars);
    await openUnwatched(run, ["one"], "up/x", { single: true });
    await settleFirst(run, text);
    const read = async (): Promise<boolean[]> => {
      const results = await run.object.results(1, 0);
      const ended = (await run.object.endedSlots(1, null, 0))?.slots ?? [];
      return [...results, ...ended].map((slot) => slot.text === text);
    };
    expect(await read()).toEqual([true, true]);
    await evict(run.object);
    expect(await read()).toEqual([true, true]);
    expect(await rowCounts(run)).toMatchObject({ single: 1, slot: slots });
  });

  it("call is longer than its row takes is stored in several, and comes back under its key", async () => {
    const run = await openRun();
    const request = body("key/long-single", "x".repeat(SINGLE_CHARS_MAX));
    const first = await keyed(run, "k", "/query", request);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1, named: 1, slot: 1 });
    await keyed(run, "short", "/query", body("key/long-single"));
    await crash(run.object);
    expect(await keyed(run, "k", "/query", request)).toEqual({ ...first, replayed: true });
    expect((await upstreamStats("long-single")).requests).toBe(2);
    await expectAtRest(run);
  });
});

describe("a group of single calls whose run restarts", () => {
  it("has its end in the log if all of its calls have ended", async () => {
    const run = await openRun({ window_ms: 10_000 });
    for (const name of ["one", "two"]) await keyed(run, name, "/query", body("key/window-ended"));
    await crash(run.object);
    await expectAtRest(run);
    const ends = ofType(await logOf(run), "group_completed");
    expect(ends).toMatchObject([{ count: 2, status: "completed" }]);
    await crash(run.object);
    expect(ofType(await logOf(run), "group_completed")).toEqual(ends);
  });

  it.each(["stored", "plain"])("goes on with the %s calls that are in flight", async (kind) => {
    const run = await openRun({ window_ms: 10_000 });
    const key = `window-${kind}`;
    const send = async (name: string): Promise<unknown> => {
      const asked = body(`key/${key}/latch/${key}`, name);
      return kind === "stored" ? (await keyed(run, name, "/query", asked)).json : await run.query(asked);
    };
    // The first is stored before there is a group.
    const first = send("one");
    await untilInFlight(key, 1);
    const answers = Promise.all([first, ...["two", "three"].map(send)]);
    await untilInFlight(key, 3);
    await letThrough(key, 1);
    await expect.poll(async () => ofType(await logOf(run), "slot_completed").length).toBe(1);
    await crash(run.object);
    await openLatch(key);
    expect(await answers).toMatchObject([{ text: "one" }, { text: "two" }, { text: "three" }]);
    await expect.poll(async () => ofType(await logOf(run), "group_completed")).toMatchObject([{ count: 3 }]);
    await expectAtRest(run);
    expect((await upstreamStats(key)).requests).toBe(3);
  });
});

describe("the end of a stored call", () => {
  const ask = (run: TestRun, key: string) => keyed(run, key, "/query", body("key/carried", key));
  /** What the run has spent and counted. */
  const booksOf = async (run: TestRun) => {
    const { budget, stats } = await run.document();
    return { budget, stats };
  };
  const rowOf = <Row extends Record<string, number>>(run: TestRun, query: string): Promise<Row> =>
    runInDurableObject(run.object, (_: RunObject, { storage }) => storage.sql.exec<Row>(query).one());
  const carriedIn = (run: TestRun) => rowOf<{ carried: number }>(run, "SELECT count(shard) AS carried FROM single");

  it(
    "has its shard in its own row, and a restart after any of many finds all that they cost",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ budget: { usd: 1 } });
      for (let ended = 1; ended <= CARRIED_SHARDS_MAX + 4; ended += 1) {
        expect(await ask(run, `k${ended}`)).toMatchObject({ status: 200 });
        // The first that ended wrote the row of the shard, and so does the one after as many as may be carried.
        expect(await carriedIn(run)).toEqual({ carried: ended - (ended <= CARRIED_SHARDS_MAX + 1 ? 1 : 2) });
        const books = await booksOf(run);
        expect(books.budget.calls).toMatchObject({ spent: ended, reserved: 0 });
        await crash(run.object);
        expect(await booksOf(run)).toEqual(books);
      }
      await expectAtRest(run);
    },
  );

  it("is not lost with its shard when a row of another shard says that nobody need read the call", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    for (const key of ["in-the-row", "carried"]) expect(await ask(run, key)).toMatchObject({ status: 200 });
    expect(await carriedIn(run)).toEqual({ carried: 1 });
    skipTime(OPENINGS_RECALLED_MS + 1);
    // A call without a key, of another shard.
    const attemptId = await acquireOne(run);
    await run.object.settle({ attemptId, outcome: SUCCESS, stored: null });
    await run.object.logPage(0, null);
    const books = await booksOf(run);
    expect(books.budget.calls).toMatchObject({ spent: 3, reserved: 0 });
    await crash(run.object);
    expect(await booksOf(run)).toEqual(books);
    await expectAtRest(run);
  });

  it("leaves a shard that has grown long to the shard's row, and no call's row has more than it may keep", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const ofModel = (model: number) => keyed(run, `k${model}`, "/query", body(`key/carried-long/m/${model}`));
    for (let model = 1; model <= 12; model += 1) {
      expect(await ofModel(model)).toMatchObject({ status: 200 });
    }
    const { carried } = await carriedIn(run);
    expect(carried).toBeGreaterThan(1);
    expect(carried).toBeLessThan(8);
    const lines = "substr(shard, instr(shard, char(10)) + 1)";
    const { longest } = await rowOf<{ longest: number }>(run, `SELECT max(length(${lines})) AS longest FROM single`);
    expect(longest).toBeLessThanOrEqual(CARRIED_CHARS_MAX);
    const books = await booksOf(run);
    expect(books.budget.calls).toMatchObject({ spent: 12, reserved: 0 });
    await crash(run.object);
    expect(await booksOf(run)).toEqual(books);
    await expectAtRest(run);
  });

  it("carries the reservations of the calls that are in flight beside it", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    await ask(run, "first");
    const held = keyed(run, "held", "/query", body("key/carried-held/latch/carried-held"));
    await untilInFlight("carried-held", 1);
    await ask(run, "second");
    expect(await carriedIn(run)).toEqual({ carried: 1 });
    const books = await booksOf(run);
    expect(books.budget.calls).toMatchObject({ spent: 2, reserved: 1 });
    await crash(run.object);
    expect((await booksOf(run)).budget).toEqual(books.budget);
    await openLatch("carried-held");
    expect(await held).toMatchObject({ status: 200 });
    expect((await upstreamStats("carried-held")).requests).toBe(1);
    await expectAtRest(run);
  });
});

describe("an instance that wakes for a stored single call", () => {
  it("has a higher number than those before it, whichever row has theirs", async () => {
    const run = await openRun();
    for (const name of ["one", "two", "three"]) await openUnwatched(run, [name], "up/x", { single: true });
    const claim = (settlements: Settlement[]) => run.object.settleAndClaim(0, settlements, 6, false);
    const epoch = async (): Promise<number> => (await run.object.endedSlots(3, null, 0))?.cursor.epoch ?? -1;
    const { jobs } = await claim([]);
    const epochs = [await epoch()];
    for (const { lease } of jobs.slice(0, 2)) {
      await crash(run.object);
      // The row of the lane's shard is written, and needs no other for the number.
      await claim([settlementOf(lease.attemptId, "answer")]);
      epochs.push(await epoch());
    }
    for (const _ of [1, 2]) {
      await crash(run.object);
      epochs.push(await epoch());
    }
    expect(jobs).toHaveLength(3);
    expect(epochs).toEqual([...new Set(epochs)].toSorted((a, b) => a - b));
    expect(epochs).toHaveLength(5);
  });
});

/** Gives the first attempt of a run this answer, as a lane does. */
async function settleFirst(run: TestRun, text: string): Promise<void> {
  const { jobs } = await run.object.settleAndClaim(0, [], 6, false);
  const settlements = jobs.map(({ lease: { attemptId } }) => settlementOf(attemptId, text));
  expect(settlements).toHaveLength(1);
  await run.object.settleAndClaim(0, settlements, 6, false);
}

function settlementOf(attemptId: string, text: string): Settlement {
  const usage = { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
  return { attemptId, outcome: { kind: "success", text, model: "x", finishReason: "stop", usage, latencyMs: 1 } };
}

/** The state of the one stored slot; null = it has not been written. */
function slotState(run: TestRun): Promise<string | null> {
  return runInDurableObject(run.object, (_: RunObject, { storage: { sql } }) => {
    const { state } = sql.exec<{ state: string | null }>("SELECT slot ->> '$.state' AS state FROM single").one();
    return state;
  });
}
