import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { LONG_POLL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { askingFor, factsOf } from "../support/objects-direct.ts";
import { listRuns, openRun, prompts, requestRuns, untilInFlight, upstreamStats } from "../support/objects-run.ts";

/** Ids of the seven runs of this file, in the order of their opening. */
const opened: string[] = [];

beforeAll(async () => {
  for (let count = 0; count < 7; count++) opened.push((await openRun({ name: `run ${count}` })).id);
});

describe("the list of runs", () => {
  it("shows the newest first, page by page, each once", async () => {
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

  it("says that there is no more when a page ends with the last run", async () => {
    expect(await listRuns("limit=7")).toMatchObject({ hasMore: false, cursor: null });
    expect(await listRuns("limit=6")).toMatchObject({ hasMore: true, cursor: opened[1] });
  });

  it("does not move under a reader when a run is opened between two pages", async () => {
    const first = await listRuns("limit=3");
    const late = await openRun();
    const second = await listRuns(`limit=3&cursor=${first.cursor}`);
    expect([...first.ids, ...second.ids]).toEqual(opened.toReversed().slice(0, 6));
    expect((await listRuns("limit=1")).ids).toEqual([late.id]);
  });

  it("refuses a cursor that it never gave", async () => {
    const response = await requestRuns("cursor=run_unknown");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("cursor");
  });

  it("outlives a restart of its object", async () => {
    const before = await listRuns("limit=100");
    await evictDurableObject(env.DIRECTORY.getByName("runs"));
    expect(await listRuns("limit=100")).toEqual(before);
  });
});

describe("a run whose time is over", () => {
  it("refuses queries and batches, and sends nothing", async () => {
    const run = await openRun({ expires_in_s: 60 });
    expect((await run.ask({ prompt: "in time", model: "up/key/over" })).status).toBe(200);
    skipTime(61_000);
    expect(await run.ask({ prompt: "late", model: "up/key/over" })).toMatchObject({
      status: 401,
      error: { code: "invalid_api_key" },
    });
    expect((await run.post("/batch", { prompts: ["late"], model: "up/key/over" })).status).toBe(401);
    expect((await upstreamStats("over")).requests).toBe(1);
  });

  it("refuses by its object too, whatever a token says", async () => {
    const run = await openRun({ expires_in_s: 60 });
    skipTime(61_000);
    const facts = factsOf("p", "up/x");
    expect(await run.object.acquire(askingFor("c", facts))).toMatchObject({
      ok: false,
      reason: { reason: "invalid_api_key" },
    });
    expect(await run.object.stagePages("key", [])).toMatchObject({ ok: false });
    expect((await run.object.document(null))?.status).toBe("expired");
  });

  it("ends what is queued of a batch, and lets what runs end", async () => {
    // Its time is over before a lease of its lane is.
    const run = await openRun({ expires_in_s: 20, max_parallel: 2 });
    const batch = run.batch({ prompts: prompts(6), model: "up/key/over-batch/delay/300" });
    await untilInFlight("over-batch", 2);
    skipTime(20_000);
    await runDurableObjectAlarm(run.object);
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

  it("ends the queries that wait for a permit, and lets the one that runs end", async () => {
    const run = await openRun({ expires_in_s: 20, max_parallel: 1 });
    const model = "up/key/over-queue/delay/300";
    const running = run.ask({ prompt: "runs", model });
    await untilInFlight("over-queue", 1);
    const waiting = prompts(3).map((prompt) => run.ask({ prompt, model }));
    await expect.poll(async () => (await run.object.document(null))?.stats.pending_queries).toBe(4);
    skipTime(20_000);
    await runDurableObjectAlarm(run.object);
    expect((await running).status).toBe(200);
    expect((await Promise.all(waiting)).map(({ error }) => error?.code)).toEqual(Array(3).fill("invalid_api_key"));
    expect((await upstreamStats("over-queue")).requests).toBe(1);
  });
});

describe("a query that waits longer than one object call may", () => {
  it("keeps its place, and is answered when its turn comes", async () => {
    const run = await openRun({ max_parallel: 1 });
    const model = "up/key/patient";
    const first = run.query({ prompt: "first", model: `${model}/delay/1800` });
    await untilInFlight("patient", 1);
    const second = run.query({ prompt: "second", model });
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(2);
    const third = run.query({ prompt: "third", model });
    // The object's own look at the clock comes once a second.
    skipTime(LONG_POLL_MS);
    await scheduler.wait(1_200);
    expect((await run.document()).stats.pending_queries).toBe(3);
    const answers = await Promise.all([first, second, third]);
    expect(answers.map(({ text }) => text)).toEqual(["first", "second", "third"]);
    expect(Object.keys((await upstreamStats("patient")).sends)).toEqual(["first", "second", "third"]);
    expect((await run.document()).stats.total_queries).toBe(3);
  });
});
