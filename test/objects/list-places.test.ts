/** Where a part of the list of runs finds the row of a run: there is no index of ids, which each run would write a row of. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it, onTestFinished } from "vitest";
import { directoryOf } from "../../src/objects/address.ts";
import { LIST_PLACES_READ_MAX } from "../../src/limits.ts";
import type { DirectoryApi } from "../../src/objects/methods/directory-api.ts";
import { openRun } from "../support/objects-run.ts";

const OTHERS = 500;
const SUMMARY = { text: "{}", atMs: 5 };
const PLACE = 1_800_000_000_000_000;

/** A part with many runs of long ago, and what it does in `work`. */
function inLongPart<T>(id: DurableObjectId, work: (part: DirectoryApi, sql: SqlStorage) => T | Promise<T>): Promise<T> {
  return runInDurableObject(env.DIRECTORY.get(id), (part: DirectoryApi, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE old (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM old WHERE place < ?)
        INSERT INTO run (opened, id, held_nano_usd) SELECT place, 'run_old_' || place, 0 FROM old`,
      OTHERS,
    );
    return work(part, sql);
  });
}

/** Counts what the statements read from now on that look for a run: the most of one of them. */
function mostRead(sql: SqlStorage): () => number {
  const prototype: SqlStorage = Object.getPrototypeOf(sql);
  const { exec } = prototype;
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  prototype.exec = function <T extends Record<string, SqlStorageValue>>(query: string, ...bindings: unknown[]) {
    const cursor = exec.call<SqlStorage, [string, ...unknown[]], SqlStorageCursor<T>>(this, query, ...bindings);
    if (/ run (SET .* )?WHERE /.test(query)) cursors.push(cursor);
    return cursor;
  };
  onTestFinished(() => {
    prototype.exec = exec;
  });
  return () => Math.max(...cursors.map(({ rowsRead }) => rowsRead));
}

it("a part reads few rows of a long list for a run whose opening it is told, and all for one without", async () => {
  await inLongPart(env.DIRECTORY.newUniqueId(), async (part, sql) => {
    const most = mostRead(sql);
    const reservation = { day: "2026-11-29", nanoUsd: 500, limitNanoUsd: 1_000 };
    // Others have its place and the next one.
    for (const id of ["run_a", "run_b", "run_c"])
      part.add({ id, openedAt: PLACE }, id === "run_c" ? reservation : null);
    part.add({ id: "run_c", openedAt: PLACE }, reservation);
    part.summarise("run_b", SUMMARY, false, PLACE);
    expect(part.resizeChild("run_c", 700, 1_000, PLACE)).toEqual({ ok: true });
    await part.childEnded("run_c", 300, 0, PLACE);
    part.forget("run_a", PLACE);
    expect(part.newest(null, 2, true)).toEqual([
      { openedAt: PLACE + 2, id: "run_c" },
      { openedAt: PLACE + 1, id: "run_b", summary: SUMMARY },
    ]);
    expect(sql.exec("SELECT committed_nano_usd AS nanoUsd FROM day").one()).toEqual({ nanoUsd: 300 });
    expect(most()).toBeLessThan(10);
    part.forget("run_b");
    expect(part.newest(null, 2).map(({ id }) => id)).toEqual(["run_c", `run_old_${OTHERS}`]);
    expect(most()).toBeGreaterThan(OTHERS);
  });
});

it("a run is found that has a place far from the one it is looked for at, such as a count", async () => {
  await inLongPart(env.DIRECTORY.newUniqueId(), (part, sql) => {
    for (const [id, at] of [
      ["run_last", LIST_PLACES_READ_MAX - 1],
      ["run_far", LIST_PLACES_READ_MAX],
    ] as const) {
      part.add({ id, openedAt: PLACE + at }, null);
      part.summarise(id, SUMMARY, false, PLACE);
    }
    part.summarise("run_old_3", SUMMARY, true, PLACE);
    expect(sql.exec("SELECT id FROM run WHERE body IS NOT NULL ORDER BY id").toArray()).toEqual(
      ["run_far", "run_last", "run_old_3"].map((id) => ({ id })),
    );
    for (const id of ["run_far", "run_old_3"]) part.forget(id, PLACE);
    expect(part.countBefore({ openedAt: Number.MAX_SAFE_INTEGER, id: "" }, 1_000)).toBe(OTHERS);
  });
});

it("a run says when it was opened, when it is listed and when it reports", { tags: ["slow"] }, async () => {
  const first = await openRun({ name: "in a long list", default_model: "sim/echo" });
  const most = await inLongPart(directoryOf(env, { id: first.id, holder: null }).id, (_, sql) => mostRead(sql));
  await first.query({ prompt: "x" });
  await first.send("POST", `/runs/${first.id}/close`);
  const part = directoryOf(env, { id: first.id, holder: null });
  const summary = async () => (await part.newest(null, 1_000, true)).find(({ id }) => id === first.id)?.summary?.text;
  await expect.poll(summary).toContain("closed");
  expect(most()).toBeLessThan(OTHERS);
  await runInDurableObject(env.DIRECTORY.get(part.id), (_, { storage }) => {
    storage.sql.exec("DELETE FROM run WHERE id LIKE 'run_old_%'");
  });
});
