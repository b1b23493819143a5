/** What an object reads when it wakes depends on what is open in its run, and not on all that the run has done. */
import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { RunObject } from "../../../src/index.ts";
import { KEYS_PER_ROW, OPENINGS_RECALLED_MS } from "../../../src/limits.ts";
import { skipTime } from "../../support/objects-clock.ts";
import { evict } from "../../support/objects-direct.ts";
import { keyed, openAsync } from "../../support/objects-group.ts";
import { openLatch, openRun, prompts, untilInFlight, type TestRun } from "../../support/objects-run.ts";

const CALLS = 400;
const AT_ONCE = 40;
/** Rows of settings, status and the like, of the shards, of one or two open groups and their calls. */
const ROWS_AT_WAKING = 50;

it("reads no call that has ended, and of its keys one row for many", { tags: ["slow"] }, async () => {
  const run = await openRun({ max_parallel: 64 });
  await makeCalls(run);
  const before = await run.document();
  expect(await rowsRead(run, () => run.document())).toBeLessThanOrEqual(ROWS_AT_WAKING);
  const after = await run.document();
  expect(after.stats).toEqual(before.stats);
  expect(after.budget).toEqual(before.budget);
  expect(after.stats.total_queries).toBe(CALLS + 1);
  // Keys that are in no row of keys yet are read one by one.
  const ofKeys = await rowsRead(run, () => query(run, "another"));
  expect(ofKeys).toBeLessThanOrEqual(ROWS_AT_WAKING + CALLS / KEYS_PER_ROW + KEYS_PER_ROW);
  for (const key of ["k-0", `k-${CALLS - 1}`, "last"]) expect(await query(run, key)).toMatchObject({ replayed: true });
});

it("reads none of 30,000 calls of batches that have ended", async () => {
  const run = await openRun({ max_parallel: 64 });
  for (const name of ["a", "b", "c"])
    await run.batch({ prompts: prompts(4).map((prompt) => `${name} ${prompt}`), model: "up/key/waking-many" });
  const before = await run.document();
  // As many as three batches of 10,000 would have: their rows are those of the slots that have ended.
  const stored = await runInDurableObject(run.object, (_: RunObject, { storage: { sql } }) => {
    const columns = sql.exec<{ name: string }>("SELECT name FROM pragma_table_info('slot')").toArray();
    const others = columns.map(({ name }) => name).filter((name) => name !== "id");
    for (let copied = 4; copied < 10_000; copied *= 2)
      sql.exec(
        `INSERT INTO slot (id, ${others.join(", ")}) SELECT id + ?1, ${others.join(", ")} FROM slot
         WHERE id % 65536 < min(?1, 10000 - ?1)`,
        copied,
      );
    return sql.exec<{ calls: number }>("SELECT count(*) AS calls FROM slot").one().calls;
  });
  expect(stored).toBe(30_000);
  // A batch that ends later has the record of those that have ended before.
  skipTime(OPENINGS_RECALLED_MS + 1);
  await query(run, "last");
  expect(await rowsRead(run, () => run.document())).toBeLessThanOrEqual(ROWS_AT_WAKING);
  expect((await run.document()).stats.total_queries).toBe(before.stats.total_queries + 1);
});

it("reads all that was stored before there was a record of it once, and then no more", { tags: ["slow"] }, async () => {
  const run = await openRun({ max_parallel: 64 });
  await makeCalls(run);
  const { stats } = await run.document();
  await runInDurableObject(run.object, (_: RunObject, { storage }) => {
    storage.sql.exec("DROP TABLE keys");
    storage.sql.exec(`UPDATE shard SET body = replace(body, '"settled":', '"unknown":')`);
  });
  expect(await rowsRead(run, () => run.document())).toBeGreaterThan(CALLS);
  expect((await run.document()).stats).toEqual(stats);
  expect(await query(run, "k-0")).toMatchObject({ replayed: true });
  await query(run, "another");
  expect(await rowsRead(run, () => run.document())).toBeLessThanOrEqual(ROWS_AT_WAKING);
  expect((await run.document()).stats.total_queries).toBe(stats.total_queries + 1);
});

it("finds the groups that are open among many newer ones that have ended", { tags: ["slow"] }, async () => {
  const run = await openRun({ max_parallel: 8 });
  const items = ["a", "b"].map((prompt) => ({ prompt, model: "up/key/waking-open/latch/waking-open" }));
  const group = await openAsync(run, { items });
  await untilInFlight("waking-open", 2);
  await makeCalls(run);
  expect(await rowsRead(run, () => run.document())).toBeLessThanOrEqual(ROWS_AT_WAKING);
  await openLatch("waking-open");
  const status = async (): Promise<unknown> =>
    (await (await run.send("GET", `/groups/${group}`)).json<{ status: string }>()).status;
  await expect.poll(status).toBe("completed");
});

/** Makes calls with keys, and one more when requests that open them are no longer repeated. */
async function makeCalls(run: TestRun): Promise<void> {
  for (let at = 0; at < CALLS; at += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, place) => query(run, `k-${at + place}`)));
  skipTime(OPENINGS_RECALLED_MS + 1);
  await query(run, "last");
}

async function query(run: TestRun, key: string): Promise<{ replayed: boolean }> {
  const answered = await keyed(run, key, "/query", { prompt: key, model: "up/key/waking" });
  expect(answered).toMatchObject({ status: 200, json: { text: key } });
  return answered;
}

/** Rows that an object reads which wakes for `work`. */
async function rowsRead(run: TestRun, work: () => Promise<unknown>): Promise<number> {
  await evict(run.object);
  await work();
  return (await run.object.rowsWritten()).read ?? Infinity;
}
