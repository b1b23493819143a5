/**
 * A run, and a part of the list of runs, with the rows that code of each earlier version has written (test/support/fixtures/rows.jsonl):
 * today's objects begin on them, and find all that is in them. Recorded by the source of the commit that a line names: a run with a batch
 * of which one call failed, its retry, a batch that stopped early, a query with an Idempotency-Key and one without, a change of its
 * settings, and a batch in the background with one call at the upstream and one queued; a part of the list with runs that are open and
 * that ended, with reservations in a day's budget and summaries. The last line is of today's
 * version: who adds one adds its line, too.
 */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { MIGRATIONS as DIRECTORY } from "../../durable-objects/directory/migrations.ts";
import { MIGRATIONS } from "../../durable-objects/run/store/tables.ts";
import { makeTables, versionOf, type Migration } from "../../durable-objects/schema-version.ts";
import { makeKeys } from "../../src/http/auth/keys.ts";
import { signRunToken } from "../../src/http/auth/token.ts";
import { DirectoryObject } from "../../src/index.ts";
import type { ListedRun } from "../../src/objects/methods/directory-api.ts";
import recorded from "../support/fixtures/rows.jsonl?raw";
import { evict } from "../support/objects-direct.ts";
import { keyed, lookAt } from "../support/objects-group.ts";
import { expectGapless, logOf, ofType } from "../support/objects-log.ts";
import { expectSettled, openLatch, TestRun } from "../support/objects-run.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";

type Rows = Record<string, Record<string, string | number | null>[]>;

type Seen = {
  usd: { spent: number; reserved: number };
  groups: { id: string; status: string; results: unknown[] }[];
  keyed: { id: string; text: string; usage: unknown };
  open: string;
  list: ListedRun[];
};

type Recorded = {
  commit: string;
  versions: { run: number; directory: number };
  recordedAtMs: number;
  runId: string;
  run: Rows;
  directory: Rows;
  seen: Seen;
};

const lines = recorded.trim().split("\n");
const recordings = lines.map((line): Recorded => JSON.parse(line));

/** Times in ms since 1970, but those in the ids of groups. */
const TIMES = /(?<!pg-)\b1[78]\d{11}\b/g;
const costed = z.looseObject({ usage: z.object({ cost: z.number() }) });
const LATCH = "recorded-rows";

/** A recording with the times of the present, and a latch of its own. */
function presentOf(line: string, { commit, recordedAtMs }: Recorded): Recorded {
  const shiftMs = Date.now() - recordedAtMs;
  const text = line.replaceAll(LATCH, `${LATCH}-${commit}`).replaceAll(TIMES, (time) => String(Number(time) + shiftMs));
  return JSON.parse(text);
}

function restore({ sql }: DurableObjectStorage, migrations: readonly Migration[], version: number, rows: Rows): void {
  const earlier = migrations.filter((migration) => migration.version <= version);
  makeTables(sql, earlier, Object.keys(rows));
  for (const [table, all] of Object.entries(rows))
    for (const row of all) {
      const values = Object.values(row);
      const places = values.map(() => "?").join(", ");
      sql.exec(`INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${places})`, ...values);
    }
}

/** The run of a recording, in a new object that begins on its rows. It keeps its id, from which those of its groups follow. */
async function runOf(line: string, recording: Recorded): Promise<{ run: TestRun; seen: Seen }> {
  const { runId: id, run: rows, versions, seen } = presentOf(line, recording);
  const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
  const token = await signRunToken(signing, { runId: id, depth: 0, expiresAtMs: Date.now() + 3_600_000 });
  const run = new TestRun(id, token);
  await runInDurableObject(run.object, async (_, { storage }) => {
    restore(storage, MIGRATIONS, versions.run, rows);
    await storage.sync();
  });
  await evict(run.object);
  return { run, seen };
}

it("there are rows of every version before today's", () => {
  const upTo = (version: number): number[] => Array.from({ length: version }, (_, index) => index + 1);
  const versions = recordings.map((recording) => recording.versions);
  expect(versions.map(({ run }) => run)).toEqual(expect.arrayContaining(upTo(versionOf(MIGRATIONS) - 1)));
  expect(versions.map(({ directory }) => directory)).toEqual(expect.arrayContaining(upTo(versionOf(DIRECTORY) - 1)));
});

describe.each(recordings.map((recording, index) => ({ index, ...recording.versions })))(
  "rows of version $run of a run",
  ({ index }) => {
    const [line, recording] = [lines[index], recordings[index]];
    if (line === undefined || recording === undefined) throw new Error("no such recording");

    it(
      "have its settings, groups, calls and log, and its calls in flight and queued are answered",
      { tags: ["slow"] },
      async () => {
        const { run, seen } = await runOf(line, recording);
        const document = await run.document();
        expect(document).toMatchObject({ id: run.id, name: "recorded", metadata: { of: "rows" }, max_parallel: 5 });
        expect(document.budget.usd).toMatchObject({ limit: 1 });
        for (const { id, ...group } of seen.groups) expect(await lookAt(run, id)).toMatchObject(group);
        expect(await keyed(run, "key-1", "/query", { prompt: "keyed" })).toMatchObject({
          status: 200,
          replayed: true,
          json: seen.keyed,
        });
        const events = await logOf(run);
        expectGapless(events);
        expect(events[0]?.event_type).toBe("run_opened");
        const ended = ofType(events, "group_completed").map((event) => event.parallel_group_id);
        for (const { id } of seen.groups) expect(ended.filter((other) => other === id)).toEqual([id]);

        await openLatch(`${LATCH}-${recording.commit}`);
        await expect
          .poll(() => lookAt(run, seen.open))
          .toMatchObject({ status: "completed", results: ["late", "later"] });
        const { usage } = costed.parse(await lookAt(run, seen.open));
        // The attempt that was in flight may have been answered: it is charged what it reserved.
        expect(usage.cost).toBeGreaterThan(seen.usd.reserved);
        expectSettled(await run.budget(), seen.usd.spent + usage.cost);
        // Twice: the brought rows are those of today, on which the next instance begins as well.
        await evict(run.object);
        expect(await lookAt(run, seen.open)).toMatchObject({ status: "completed", results: ["late", "later"] });
        expect((await run.document()).max_parallel).toBe(5);
      },
    );
  },
);

describe.each(recordings.map((recording) => ({ recording, version: recording.versions.directory })))(
  "rows of version $version of a part of the list of runs, of $recording.commit",
  ({ recording, version }) => {
    it("have its runs, their summaries and their day's budget", async () => {
      await runInDurableObject(env.PROVIDER_BATCH.getByName(crypto.randomUUID()), async (_: unknown, state) => {
        const { storage } = state;
        restore(storage, DIRECTORY, version, recording.directory);
        if (version > 1) storage.kv.put("schema", version);
        const part = new DirectoryObject(state, env);
        const { list } = recording.seen;
        expect(part.newest(null, 10, true)).toEqual(list);
        const oldest = list.at(-1);
        expect(oldest === undefined ? null : part.countBefore(oldest, 10)).toBe(0);
        await part.childEnded("run_2", 200, 0);
        await part.childEnded("run_3", 300, 0);
        // What run_2 did not spend of its 500 is free again; run_3 had ended.
        const committed = "SELECT committed_nano_usd AS nanoUsd FROM day";
        expect(storage.sql.exec(committed).one()).toEqual({ nanoUsd: 300 });
        for (const { id } of list) part.forget(id);
        expect(part.newest(null, 10)).toEqual([]);
        expect(storage.kv.get("schema")).toBe(versionOf(DIRECTORY));
      });
    });
  },
);
