/** `GET /runs?view=summary`: what the list of runs knows of each, without a call to any. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { expect, it } from "vitest";
import { directoryOf, newRunId } from "../../src/objects/address.ts";
import { runSummaryList } from "../../src/contract/runs.ts";
import { forgetRuns, ListOrder } from "../../src/objects/clients/directory.ts";
import { openingSummary } from "../../src/objects/clients/run-summary.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { evict } from "../support/objects-direct.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

async function listed(query: string) {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const response = await exports.default.fetch(`http://gateway.test/runs?view=summary&${query}`, { headers });
  expect(response.status).toBe(200);
  return runSummaryList().parse(await response.json());
}

type Listed = Pick<TestRun, "id">;

async function listOnly(): Promise<Listed> {
  const id = newRunId(env);
  const nowMs = Date.now();
  const limits = { usd: 1_000_000_000, calls: null, prompt_tokens: null, completion_tokens: null, new_tokens: null };
  const run = { id, name: "summed", createdAtMs: nowMs, expiresAtMs: nowMs + 3_600_000, limits };
  const summary = { text: JSON.stringify(openingSummary(run)), atMs: nowMs };
  await partOf({ id }).add({ id, openedAt: order.next(nowMs) }, null, summary);
  return { id };
}

const order = new ListOrder();

const callsOf = ({ id }: Listed): number => Object.values(watched(id).calls).reduce((sum, calls) => sum + calls, 0);

const partOf = ({ id }: Listed) => env.DIRECTORY.get(directoryOf(env, { id, holder: null }).id);

const change = (run: TestRun, statement: string): Promise<void> =>
  runInDurableObject(partOf(run), (_, { storage }) => {
    storage.sql.exec(`${statement} WHERE id = ?`, run.id);
  });

it("a look at the summaries of 300 runs wakes none of them", { tags: ["slow"] }, async () => {
  const opened = await Promise.all(Array.from({ length: 10 }, () => openRun({ name: "summed", budget: { usd: 1 } })));
  // The others are listed as POST /runs lists them; opening their objects takes half a minute.
  const others = await Promise.all(Array.from({ length: 290 }, listOnly));
  const runs = [...opened, ...others];
  const before = runs.map(callsOf);
  const found: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const page = await listed(`name=summed&status=active&limit=100${cursor === "" ? "" : `&cursor=${cursor}`}`);
    for (const { id, budget, status } of page.data) {
      found.push(id);
      expect([status, budget.usd.limit, budget.usd.remaining]).toEqual(["active", 1, 1]);
    }
    cursor = page.next_cursor;
  }
  expect(found.toSorted()).toEqual(runs.map(({ id }) => id).toSorted());
  expect(runs.map(callsOf)).toEqual(before);
  // The files after this one have the same list.
  await forgetRuns(env, others);
  // A document is a call to each.
  await exports.default.fetch("http://gateway.test/runs?name=summed&limit=1", {
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  expect(runs.map(callsOf)).not.toEqual(before);
});

it("a run that has ended without a budget of the day is listed as ended, with what it spent", async () => {
  const run = await openRun({ name: "summed end", default_model: "sim/echo", budget: { usd: 1 } });
  const { usage } = await run.query({ prompt: "x" });
  await run.send("POST", `/runs/${run.id}/close`);
  await expect.poll(async () => (await listed("name=summed end")).data[0]?.status).toBe("closed");
  const [summary] = (await listed("name=summed end")).data;
  expect(summary).toMatchObject({ id: run.id, in_flight: 0, stats: { total_queries: 1, pending_queries: 0 } });
  expect(summary?.budget.usd).toMatchObject({ spent: usage.cost, reserved: 0 });
  expect((await listed("name=summed end&status=active")).data).toEqual([]);
});

it("a run that is woken by a call now and then reports with its alarm", async () => {
  const run = await openRun({ name: "summed alarm", default_model: "sim/echo" });
  await run.query({ prompt: "x" });
  await evict(run.object);
  expect((await listed("name=summed alarm")).data[0]?.stats.total_queries).toBe(0);
  await runDurableObjectAlarm(run.object);
  expect((await listed("name=summed alarm")).data[0]?.stats.total_queries).toBe(1);
});

it("a run of an earlier version, without a summary, is read once", async () => {
  const run = await openRun({ name: "summed earlier", default_model: "sim/echo" });
  await run.query({ prompt: "x" });
  await change(run, "UPDATE run SET at_ms = NULL, body = NULL");
  expect((await listed("name=summed earlier")).data).toMatchObject([{ id: run.id, stats: { total_queries: 1 } }]);
  const kept = () => runInDurableObject(partOf(run), (object) => object.newest(null, 1_000, true));
  await expect.poll(async () => (await kept()).find(({ id }) => id === run.id)?.summary).toBeDefined();
  const before = callsOf(run);
  expect((await listed("name=summed earlier")).data).toMatchObject([{ id: run.id, stats: { total_queries: 1 } }]);
  expect(callsOf(run)).toBe(before);
});

it("a run past its expiry is listed as expired, even if it has not said so", async () => {
  const run = await openRun({ name: "summed expiry" });
  await change(run, "UPDATE run SET body = json_set(body, '$.expires_at', '2020-01-01T00:00:00.000Z')");
  expect((await listed("name=summed expiry")).data[0]?.status).toBe("expired");
});

it("a run of a part of the list without a summary gets one, and none once it is forgotten", async () => {
  const part = env.DIRECTORY.getByName(crypto.randomUUID());
  await runInDurableObject(part, (_, { storage }) => {
    storage.sql.exec("INSERT INTO run (opened, id, held_nano_usd) VALUES (7, 'run_old', 0)");
  });
  const stub = env.DIRECTORY.get(part.id);
  await stub.summarise("run_old", { text: "{}", atMs: 5 });
  expect(await stub.newest(null, 10, true)).toEqual([{ openedAt: 7, id: "run_old", summary: { text: "{}", atMs: 5 } }]);
  expect(await stub.newest(null, 10)).toEqual([{ openedAt: 7, id: "run_old" }]);
  await stub.forget("run_old");
  await stub.summarise("run_old", { text: "{}", atMs: 6 });
  await runInDurableObject(stub, (_, { storage }) => {
    expect(storage.sql.exec("SELECT * FROM run").toArray()).toEqual([]);
  });
});
