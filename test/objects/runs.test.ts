import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { directoriesOf, directoryOf } from "../../src/objects/address.ts";
import type { DirectoryObject } from "../../src/index.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireRequest, evict, factsOf, namedSettings } from "../support/objects-direct.ts";
import {
  listRuns,
  openLatch,
  openRun,
  prompts,
  requestRuns,
  untilInFlight,
  upstreamStats,
} from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

/** Every object that has a part of the list. */
const directories = (): DurableObjectStub<DirectoryObject>[] =>
  directoriesOf(env).map((stubOf) => env.DIRECTORY.get(stubOf().id));

/** Ids of the seven runs of this file, in the order of their opening. */
const opened: string[] = [];

beforeAll(async () => {
  // Files that ran before this one in the same runtime have opened runs.
  for (const directory of directories()) {
    await runInDurableObject(directory, (_, state) => state.storage.deleteAll());
    await evict(directory);
  }
  for (let count = 0; count < 7; count++) opened.push((await openRun({ name: `run ${count}` })).id);
});

describe("the list of runs", () => {
  it("has the newest first, page by page, each once", async () => {
    const seen: string[] = [];
    let query = "limit=3";
    for (let hasMore = true; hasMore;) {
      const page = await listRuns(query);
      expect(page.ids.length).toBeLessThanOrEqual(3);
      seen.push(...page.ids);
      hasMore = page.hasMore;
      query = `limit=3&cursor=${page.cursor}`;
    }
    expect(seen).toEqual(opened.toReversed());
  });

  it("reports no further page when a page ends with the last run", async () => {
    expect(await listRuns("limit=7")).toMatchObject({ hasMore: false, cursor: null });
    expect(await listRuns("limit=6")).toMatchObject({
      hasMore: true,
      cursor: expect.stringContaining(opened[1] ?? "no run"),
    });
  });

  it("does not shift when a run is opened between two pages", async () => {
    const first = await listRuns("limit=3");
    const late = await openRun();
    const second = await listRuns(`limit=3&cursor=${first.cursor}`);
    expect([...first.ids, ...second.ids]).toEqual(opened.toReversed().slice(0, 6));
    expect((await listRuns("limit=1")).ids).toEqual([late.id]);
  });

  it("is spread over objects by the runs' ids, and no object is called for more than the opening of its own", async () => {
    const sizes = await Promise.all(directories().map(async (directory) => (await directory.newest(null, 100)).length));
    expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(3);
    // Not in the object that was the whole list once.
    expect(sizes.at(-1)).toBe(0);
  });

  it("continues behind a run that has been deleted meanwhile", async () => {
    const gone = await openRun();
    const { ids, cursor } = await listRuns("limit=1");
    expect(ids).toEqual([gone.id]);
    await directoryOf(env, { id: gone.id, holder: null }).forget(gone.id);
    expect((await listRuns(`limit=1&cursor=${cursor}`)).ids).not.toContain(gone.id);
    expect((await listRuns(`limit=100&cursor=${cursor}`)).ids).toEqual((await listRuns("limit=100")).ids);
  });

  it("ends with the runs of earlier versions, newest first, each once", async () => {
    const whole = env.DIRECTORY.getByName("runs");
    const old = ["run_old_1", "run_old_2", "run_old_3"];
    for (const id of old) {
      await env.RUN.getByName(id).open(namedSettings(id));
      // As it was added: the object counted its rows.
      await runInDurableObject(whole, (_, { storage }) => {
        storage.sql.exec("INSERT INTO run (id, day, held_nano_usd) VALUES (?, NULL, 0)", id);
      });
    }
    const all = (await listRuns("limit=100")).ids;
    expect(all.slice(-3)).toEqual(old.toReversed());
    const seen: string[] = [];
    for (let query: string | null = "limit=2"; query !== null;) {
      const page = await listRuns(query);
      seen.push(...page.ids);
      query = page.cursor === null ? null : `limit=2&cursor=${page.cursor}`;
    }
    expect(seen).toEqual(all);
    for (const id of old) await whole.forget(id);
  });

  it("refuses a cursor that it did not issue", async () => {
    const response = await requestRuns("cursor=run_unknown");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("cursor");
  });

  it("survives a restart of its objects", async () => {
    const before = await listRuns("limit=100");
    for (const directory of directories()) await evict(directory);
    expect(await listRuns("limit=100")).toEqual(before);
  });
});

describe("an expired run", () => {
  it("refuses queries and batches, and sends nothing", async () => {
    const run = await openRun({ expires_in_s: 60 });
    expect((await run.tryQuery({ prompt: "in time", model: "up/key/over" })).status).toBe(200);
    skipTime(61_000);
    expect(await run.tryQuery({ prompt: "late", model: "up/key/over" })).toMatchObject({
      status: 401,
      error: { code: "invalid_api_key" },
    });
    expect((await run.post("/batch", { prompts: ["late"], model: "up/key/over" })).status).toBe(401);
    expect((await upstreamStats("over")).requests).toBe(1);
  });

  it("refuses calls in its object too, whatever the token's expiry", async () => {
    const run = await openRun({ expires_in_s: 60 });
    skipTime(61_000);
    const facts = factsOf("p", "up/x");
    expect(await run.object.acquire(acquireRequest("c", facts))).toMatchObject({
      ok: false,
      reason: { reason: "invalid_api_key" },
    });
    expect(await run.object.stagePages("key", [])).toMatchObject({ ok: false });
    expect((await run.object.document(null))?.status).toBe("expired");
  });

  it("ends the queued slots of a batch, and lets those in flight end", async () => {
    // Its time is over before a lease of its lane is.
    const run = await openRun({ expires_in_s: 20, max_parallel: 2 });
    const batch = run.batch({ prompts: prompts(6), model: "up/key/over-batch/latch/over-batch" });
    await untilInFlight("over-batch", 2);
    skipTime(20_000);
    await runDurableObjectAlarm(run.object);
    await openLatch("over-batch");
    const answer = await batch;
    expect(answer.items.map(({ status }) => status)).toEqual([
      "completed",
      "completed",
      ...Array<string>(4).fill("cancelled"),
    ]);
    expect(answer.errors[5]?.code).toBe("invalid_api_key");
    expect((await upstreamStats("over-batch")).requests).toBe(2);
    const document = await run.object.document(null);
    expect(document?.stats.pending_queries).toBe(0);
    expect(document?.budget.calls).toMatchObject({ spent: 2, reserved: 0 });
  });

  it("ends the queries that wait for a permit, and lets the one in flight end", async () => {
    const run = await openRun({ expires_in_s: 20, max_parallel: 1 });
    const model = "up/key/over-queue/latch/over-queue";
    const running = run.tryQuery({ prompt: "runs", model });
    await untilInFlight("over-queue", 1);
    const waiting = prompts(3).map((prompt) => run.tryQuery({ prompt, model }));
    await expect.poll(async () => (await run.object.document(null))?.stats.pending_queries).toBe(4);
    skipTime(20_000);
    await runDurableObjectAlarm(run.object);
    await openLatch("over-queue");
    expect((await running).status).toBe(200);
    expect((await Promise.all(waiting)).map(({ error }) => error?.code)).toEqual(Array(3).fill("invalid_api_key"));
    expect((await upstreamStats("over-queue")).requests).toBe(1);
  });
});

describe("a query that waits longer than one object call may", () => {
  it("keeps its position, and is answered when it is reached", async () => {
    const run = await openRun({ max_parallel: 1 });
    const model = "up/key/patient";
    const first = run.query({ prompt: "first", model: `${model}/latch/patient` });
    await untilInFlight("patient", 1);
    const second = run.query({ prompt: "second", model });
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    const third = run.query({ prompt: "third", model });
    // The object lets the two go that have waited for long enough, and their Workers wait at sockets.
    await expect.poll(() => watched(run.id).calls["fetch"]).toBe(2);
    expect((await run.document()).stats.pending_queries).toBe(3);
    await openLatch("patient");
    const answers = await Promise.all([first, second, third]);
    expect(answers.map(({ text }) => text)).toEqual(["first", "second", "third"]);
    expect(Object.keys((await upstreamStats("patient")).sends)).toEqual(["first", "second", "third"]);
    expect((await run.document()).stats.total_queries).toBe(3);
  });
});
