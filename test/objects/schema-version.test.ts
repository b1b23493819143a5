/** Rows of another version: those that newer code has written, as after a deployment was rolled back, and those of older code. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { makeTables, Tables, tablesIn, versionOf, type Migration } from "../../durable-objects/schema-version.ts";
import { KEPT_ANSWER_CHARS_MAX, TEXT_CHUNK_CHARS } from "../../src/limits.ts";
import { zeroTotals } from "../../src/run/measures/totals.ts";
import { freshRecord, type SlotRecord } from "../../src/run/group/record.ts";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import { MIGRATIONS as directory } from "../../durable-objects/directory/migrations.ts";
import { MIGRATIONS } from "../../durable-objects/run/store/tables.ts";
import * as worker from "../../src/index.ts";

type Stub = DurableObjectStub<Rpc.DurableObjectBranded>;
type Class = new (ctx: DurableObjectState, objects: typeof env) => object;

const name = (): string => crypto.randomUUID();

/** Every class of objects that stores rows, but the run's, which has its version in a table; and a new object of it. */
const CLASSES: Record<string, { of: Class; stub: () => Stub; migrations?: readonly Migration[] }> = {
  GateObject: { of: worker.GateObject, stub: () => env.GATES.getByName(name()) },
  UpstreamObject: { of: worker.UpstreamObject, stub: () => env.UPSTREAM.getByName(name()) },
  CassetteObject: { of: worker.CassetteObject, stub: () => env.CASSETTE.getByName(name()) },
  DirectoryObject: { of: worker.DirectoryObject, stub: () => env.DIRECTORY.getByName(name()), migrations: directory },
  BatchObject: { of: worker.BatchObject, stub: () => env.BATCH.getByName(name()) },
  ShelfObject: { of: worker.ShelfObject, stub: () => env.SHELF.getByName(name()) },
  ProviderBatchObject: { of: worker.ProviderBatchObject, stub: () => env.PROVIDER_BATCH.getByName(name()) },
};

/** Beginning fails so that callers know that it is of no use to call again, and what to tell their clients. */
function expectNewer(begin: () => object, known: number): void {
  expect(begin).toThrow(`storage has schema ${known + 1}, this code knows ${known}`);
  try {
    begin();
  } catch (error) {
    expect(objectFailure(error)).toBe("newer");
  }
}

describe.each(Object.entries(CLASSES))("a %s", (_, { of: Class, stub, migrations = [] }) => {
  it("does not begin on rows of newer code, and begins on those of its own and of none", async () => {
    await runInDurableObject(stub(), (_: unknown, state: DurableObjectState) => {
      const begin = (): object => new Class(state, env);
      expect(begin).not.toThrow();
      const known = versionOf(migrations);
      state.storage.kv.put("schema", known);
      expect(begin).not.toThrow();
      state.storage.kv.put("schema", known + 1);
      expectNewer(begin, known);
      // The instance that is there goes on.
      state.storage.kv.put("schema", known);
    });
  });
});

it("a run does not begin on rows of newer code, and begins on its own", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    new RunStore(storage).create();
    expect(new RunStore(storage).meta.get("settings")).toBeNull();
    const version = storage.sql.exec("SELECT value FROM meta WHERE key = 'schema'").one()["value"];
    const known = versionOf(MIGRATIONS);
    expect(version).toBe(String(known));
    expect(() => new RunStore(storage)).not.toThrow();
    storage.sql.exec("UPDATE meta SET value = ? WHERE key = 'schema'", String(known + 1));
    expectNewer(() => new RunStore(storage), known);
  });
});

/** As version 1 stored a slot: an insert of its columns, and a row in a table for each thing that few slots have. */
const FIRST_SLOTS = `
  INSERT INTO slot (id, state, attempts, latency_ms, queued_ms, prompt_tokens, completion_tokens, cost_nano_usd, estimated, model, text, reason)
  VALUES (65536, 'completed', 1, 5, 1, 10, 3, 900, 0, 'up/m', 'plain', NULL),
    (65537, 'completed', 1, 5, 1, 10, 3, 900, 0, 'up/m', 'recorded', '{"replay":{"key":"k","of":"r/1"},"cacheHitTokens":7}'),
    (65538, 'completed', 1, 5, 1, 10, 3, 900, 0, 'up/m', 'cheaper', '{"savedNanoUsd":40}'),
    (65539, 'completed', 1, 5, 1, 10, 3, 900, 0, 'up/m', 'told', '{"savedNanoUsd":null,"reasoningTokens":2}'),
    (65540, 'failed', 3, 5, 1, 10, 0, 900, 1, NULL, NULL, '{"reason":"lost"}'),
    (65541, 'completed', 2, 5, 1, 10, 3, 900, 0, 'up/m', 'all of it', '{"replay":{"key":"l"}}'),
    (65542, 'queued', 1, 5, 1, 10, 3, 900, 0, 'up/m', 'cut short', '{"savedNanoUsd":null,"cacheHitTokens":8}');
  INSERT INTO capped (id, cause) VALUES (65536, 'budget'), (65541, 'budget');
  INSERT INTO routed (id, upstream) VALUES (65538, 'up'), (65541, 'down');
  INSERT INTO checked (id, body) VALUES (65541, '{"violation":null}');
  INSERT INTO course (id, body) VALUES (65541, '{"steps":[{"model":"a"}]}')`;

it("a run's slots of version 1 keep what few of them have", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const first = MIGRATIONS.filter(({ version }) => version === 1);
    makeTables(storage.sql, first, ["meta", "slot", "capped", "routed", "checked", "course"]);
    storage.sql.exec("INSERT INTO meta (key, value) VALUES ('schema', '1')");
    storage.sql.exec(FIRST_SLOTS);

    const { slots } = new RunStore(storage);
    const kept = [...slots.from(1)].map(({ id, text, reason, ...slot }) => [
      id - 65_536,
      text,
      reason?.reason ?? null,
      slot.cappedBy,
      slot.upstream,
      slot.checks,
      slot.course,
      slot.replay,
      slot.savedNanoUsd,
      slot.cacheHitTokens ?? slot.reasoningTokens,
    ]);
    const no = undefined;
    expect(kept).toEqual([
      [0, "plain", null, "budget", no, no, no, no, no, no],
      [1, "recorded", null, no, no, no, no, { key: "k", of: "r/1" }, no, 7],
      [2, "cheaper", null, no, "up", no, no, no, 40, no],
      [3, "told", null, no, no, no, no, no, no, 2],
      [4, null, "lost", no, no, no, no, no, no, no],
      [5, "all of it", null, "budget", "down", { violation: null }, { steps: [{ model: "a" }] }, { key: "l" }, no, no],
      [6, "cut short", null, no, no, no, no, no, no, 8],
    ]);
    expect([...slots.recorded()]).toEqual([
      { id: 65_537, key: "k", of: "r/1" },
      { id: 65_541, key: "l", of: null },
    ]);
    expect(slots.kept(1, 0, 10)).toEqual([0, 1, 2, 3, 5]);
    for (const table of ["capped", "routed", "checked", "course"]) expect(tablesIn(storage.sql)).not.toContain(table);
  });
});

it("a judge's call of version 1 serves the group that it judges", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const first = MIGRATIONS.filter(({ version }) => version === 1);
    makeTables(storage.sql, first, ["meta", "grp", "single"]);
    const header = (seq: number): string => JSON.stringify({ header: { seq, judges: { seq: 1, answers: 3 } } });
    storage.sql.exec("INSERT INTO meta (key, value) VALUES ('schema', '1')");
    storage.sql.exec("INSERT INTO grp (seq, header) VALUES (1, ?), (2, ?)", '{"header":{"seq":1}}', header(2));
    storage.sql.exec("INSERT INTO single (seq, header, facts, calls) VALUES (3, ?, '', '')", header(3));

    const { groups } = new RunStore(storage);
    const headers = [1, 2, 3].map((seq) => groups.get(seq)?.stored.header);
    const serves = { seq: 1, answers: 3, as: "judge" };
    expect(headers).toEqual([{ seq: 1 }, { seq: 2, serves }, { seq: 3, serves }]);
  });
});

it("the rules of groups of version 2 are one map, and a group without any keeps its header", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const earlier = MIGRATIONS.filter(({ version }) => version <= 2);
    makeTables(storage.sql, earlier, ["meta", "grp", "single"]);
    storage.sql.exec("INSERT INTO meta (key, value) VALUES ('schema', '2')");
    const judge = { kind: "judge", prompt: 'is it "continue"?', model: null, every: 1, shadow: false };
    const of = (fields: object): string =>
      JSON.stringify({ header: { count: 2, onLost: "retry", ...fields }, sealed: true });
    const put = (seq: number, fields: object): void => {
      storage.sql.exec("INSERT INTO grp (seq, header) VALUES (?, ?)", seq, of({ seq, ...fields }));
    };
    put(1, { onError: "continue" });
    put(2, { onError: "abort", judgeWhen: judge, atLeast: 0.5, notify: { onEnd: true } });
    put(3, {
      onError: "continue",
      ballot: { rule: "majority" },
      tiers: "strict",
      stopWhen: { kind: "n_success", n: 1 },
    });
    const single = of({ seq: 4, onError: "abort", single: "alone" });
    storage.sql.exec("INSERT INTO single (seq, header, facts, calls) VALUES (4, ?, '', '')", single);

    const { groups } = new RunStore(storage);
    const headers = [1, 2, 3, 4].map((seq) => groups.get(seq)?.stored.header);
    const all = { count: 2, onLost: "retry" };
    expect(headers).toEqual([
      { ...all, seq: 1, onError: "continue" },
      { ...all, seq: 2, notify: { onEnd: true }, rules: { onError: "abort", judgeWhen: judge, atLeast: 0.5 } },
      {
        ...all,
        seq: 3,
        rules: { ballot: { rule: "majority" }, tiers: "strict", stopWhen: { kind: "n_success", n: 1 } },
      },
      { ...all, seq: 4, single: "alone", rules: { onError: "abort" } },
    ]);
    expect(groups.get(2)?.stored.sealed).toBe(true);
  });
});

it("the retry of a stopped group of version 2 has its other rules, and still does not stop early", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const earlier = MIGRATIONS.filter(({ version }) => version <= 2);
    makeTables(storage.sql, earlier, ["meta", "grp", "retried"]);
    storage.sql.exec("INSERT INTO meta (key, value) VALUES ('schema', '2')");
    const put = (seq: number, row: object): void => {
      storage.sql.exec("INSERT INTO grp (seq, header) VALUES (?, ?)", seq, JSON.stringify(row));
    };
    // As version 2 wrote a retry: what is different in it, and the names in the header of the first group that it has not.
    const retry = (seq: number, like: number, without: readonly string[]): void => {
      put(seq, { like, group: {}, header: { seq, retryOf: `g${like}` }, without });
      storage.sql.exec("INSERT INTO retried (seq, before) VALUES (?, ?)", seq, JSON.stringify([{ seq: like }]));
    };
    const all = { count: 2, onLost: "retry" };
    put(1, { header: { ...all, seq: 1, onError: "abort", atLeast: 0.5, stopWhen: { kind: "n_success", n: 1 } } });
    retry(2, 1, ["stopWhen"]);
    put(3, { header: { ...all, seq: 3, onError: "continue", judgeWhen: { kind: "judge", every: 1 }, trace: "t" } });
    retry(4, 3, ["judgeWhen", "trace"]);
    put(5, { header: { ...all, seq: 5, onError: "abort", trace: "t" } });
    retry(6, 5, ["trace"]);
    put(7, { header: { ...all, seq: 7, serves: { seq: 3, answers: 1, as: "judge" } } });
    // Version 1 knew services of judges only, by another name.
    retry(8, 7, ["judges"]);

    const { groups } = new RunStore(storage);
    const headers = [2, 4, 6, 8].map((seq) => groups.get(seq)?.stored.header);
    expect(headers).toEqual([
      { ...all, seq: 2, retryOf: "g1", rules: { onError: "abort", atLeast: 0.5 } },
      { ...all, seq: 4, retryOf: "g3", rules: {} },
      { ...all, seq: 6, retryOf: "g5", rules: { onError: "abort" } },
      { ...all, seq: 8, retryOf: "g7" },
    ]);
  });
});

it("a run of version 3 keeps its settings, which are in the row of its version now, and later changes of them", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const earlier = MIGRATIONS.filter(({ version }) => version <= 3);
    makeTables(storage.sql, earlier, ["meta"]);
    const settings = { id: "run_1", name: "old", tools: [], maxParallel: 8 };
    const put = "INSERT INTO meta (key, value) VALUES ('schema', '3'), ('run', ?), ('status', 'paused')";
    storage.sql.exec(put, JSON.stringify(settings));

    const { meta } = new RunStore(storage);
    const known = versionOf(MIGRATIONS);
    expect([meta.get("settings"), meta.get("status")]).toEqual([settings, "paused"]);
    expect(storage.sql.exec("SELECT key FROM meta ORDER BY key").toArray()).toEqual([
      { key: "schema" },
      { key: "status" },
    ]);
    const stored = meta.get("settings");
    if (stored !== null) meta.set("settings", { ...stored, maxParallel: 9 });
    const next = new RunStore(storage).meta;
    expect([next.get("settings"), next.get("status"), next.get("schemaVersion")]).toEqual([
      { ...settings, maxParallel: 9 },
      "paused",
      known,
    ]);
  });
});

it("a stored call of version 4 keeps what it has, and its end may carry a shard now", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const earlier = MIGRATIONS.filter(({ version }) => version <= 4);
    makeTables(storage.sql, earlier, ["meta", "single", "shard"]);
    storage.sql.exec("INSERT INTO meta (key, value) VALUES ('schema', '4')");
    storage.sql.exec("INSERT INTO single (seq, key, hash, header, facts, calls) VALUES (1, 'k', 'h', '{}', 'f', 'c')");
    const shardOf = (upTo: number) => ({ totals: zeroTotals(), leases: [], upTo });
    storage.sql.exec("INSERT INTO shard (id, body) VALUES (7, ?)", JSON.stringify(shardOf(3)));

    const { singles } = new RunStore(storage);
    expect([singles.pageOf(1), singles.keyRecord("k")]).toEqual([
      { firstIndex: 0, facts: "f", calls: "c" },
      { seq: 1, hash: "h" },
    ]);
    expect(new RunStore(storage).shards().shards).toEqual([{ id: 7, shard: shardOf(3), tail: [] }]);
    const shard = `7\n${JSON.stringify(shardOf(5))}`;
    singles.putProgress(1, { slot: null, result: null, hasLease: false, shard });
    expect(new RunStore(storage).shards()).toEqual({
      shards: [{ id: 7, shard: shardOf(5), tail: [] }],
      carried: [7],
      recordMs: null,
    });
  });
});

it("a part of the list of version 2 keeps its runs, their reservations and their summaries", async () => {
  await runInDurableObject(env.PROVIDER_BATCH.getByName(name()), async (_: unknown, state: DurableObjectState) => {
    const { storage } = state;
    const earlier = directory.filter(({ version }) => version <= 2);
    makeTables(storage.sql, earlier, ["run", "summary", "past", "day", "lease"]);
    storage.kv.put("schema", 2);
    const day = "2026-11-20";
    storage.sql.exec(
      `INSERT INTO run (opened, id, day, held_nano_usd, ended) VALUES
        (3, 'run_a', NULL, 0, 0), (1700000000000000, 'run_b', ?1, 500, 0), (1700000000000001, 'run_c', ?1, 70, 1)`,
      day,
    );
    storage.sql.exec(
      "INSERT INTO summary (id, at_ms, body) VALUES ('run_b', 12, '{\"of\":\"b\"}'), ('run_c', 13, '{}')",
    );
    storage.sql.exec("INSERT INTO day (day, committed_nano_usd) VALUES (?, 570)", day);

    const part = new worker.DirectoryObject(state, env);
    const [a, b, c] = [
      { openedAt: 3, id: "run_a" },
      { openedAt: 1_700_000_000_000_000, id: "run_b" },
      { openedAt: 1_700_000_000_000_001, id: "run_c" },
    ];
    const summaryOfB = { text: '{"of":"b"}', atMs: 12 };
    expect(part.newest(null, 10)).toEqual([c, b, a]);
    expect(part.newest(null, 10, true)).toEqual([
      { ...c, summary: { text: "{}", atMs: 13 } },
      { ...b, summary: summaryOfB },
      a,
    ]);
    expect([part.newest(c, 1), part.countBefore(c, 10)]).toEqual([[b], 2]);
    // A first summary replaces none that is there.
    part.summarise("run_b", { text: "{}", atMs: 20 }, true);
    part.summarise("run_a", { text: '{"of":"a"}', atMs: 21 }, true);
    expect(part.newest(c, 10, true).map(({ summary }) => summary)).toEqual([
      summaryOfB,
      { text: '{"of":"a"}', atMs: 21 },
    ]);
    await part.childEnded("run_b", 200, 0);
    const committed = "SELECT committed_nano_usd AS nanoUsd FROM day";
    expect(storage.sql.exec(committed).one()).toEqual({ nanoUsd: 270 });
    for (const id of ["run_a", "run_b", "run_c"]) part.forget(id);
    expect(part.newest(null, 10, true)).toEqual([]);
    expect(tablesIn(storage.sql)).not.toContain("summary");
    expect(() => new worker.DirectoryObject(state, env)).not.toThrow();
  });
});

const WHOLE = Object.entries({ RunObject: MIGRATIONS, DirectoryObject: directory }).flatMap(([of, migrations]) =>
  [...new Set(migrations.filter((each: Migration) => each.whole !== undefined).map(({ table }) => table))].map(
    (table) => ({ of, table, migrations: migrations as readonly Migration[] }),
  ),
);

it.each(WHOLE)("a new table $table of a $of is as one that all its statements have changed", async (each) => {
  const { table, migrations } = each;
  const inSteps = migrations.map(({ version, table: of, sql }) => ({ version, table: of, sql }));
  const sqlOf = ({ sql }: DurableObjectStorage): string[] => {
    const query = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY name";
    return sql
      .exec<{ sql: string }>(query, table)
      .toArray()
      .map((row) => row.sql.replaceAll(/\s+/g, " "));
  };
  const made: string[][] = [];
  for (const steps of [migrations, inSteps])
    await inStorage((storage) => {
      makeTables(storage.sql, steps, [table]);
      made.push(sqlOf(storage));
    });
  expect(made[0]).toEqual(made[1]);
  expect(made[0]?.length).toBeGreaterThan(0);
});

it("what few slots have costs no row beside the slot's", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const store = new RunStore(storage);
    const { slots } = store;
    const plain: SlotRecord = { ...freshRecord(65_536), state: "completed", text: "an answer", model: "up/m" };
    const rich: SlotRecord = {
      ...plain,
      id: 65_537,
      cappedBy: "budget",
      upstream: "up",
      checks: { repairs: 1, violation: null },
      course: { base: 1, baseCostNanoUsd: 5, model: "up/n" },
      replay: { key: "k" },
      savedNanoUsd: 4,
      cacheHitTokens: 1,
      reasoningTokens: 2,
    };
    slots.put([plain]);
    const before = store.rowsWritten;
    slots.put([rich]);
    expect(store.rowsWritten - before).toBe(1);
    expect([...slots.from(1)]).toEqual([plain, rich]);
  });
});

it("a long answer and a long one that is kept beside it fit the rows of Cloudflare, which take 2 MB", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    const { slots } = new RunStore(storage);
    const answer = { model: "up/m", finishReason: "stop" };
    const kept = { ...answer, text: "漢".repeat(KEPT_ANSWER_CHARS_MAX) };
    const texts = [TEXT_CHUNK_CHARS + 5, TEXT_CHUNK_CHARS - 1, 7, 0].map((length) => "字".repeat(length));
    for (const text of [...texts, ...texts.toReversed()]) {
      for (const isKept of [true, false]) {
        const course = isKept ? { course: { base: 1, baseCostNanoUsd: 5, kept } } : {};
        const slot: SlotRecord = { ...freshRecord(65_536), ...course, state: "queued", text };
        slots.put([slot]);
        // Compared here: a difference of half a million characters would be printed.
        const [read] = [...slots.from(1)];
        expect(read?.text === text && read.course?.kept?.text === (isKept ? kept.text : undefined)).toBe(true);
        expect([...slots.states(1)].map((state) => state.text === text)).toEqual([true]);
      }
    }
    const bytes = storage.sql.exec<{ most: number }>(
      "SELECT max(octet_length(text) + coalesce(octet_length(extras), 0)) AS most FROM slot",
    );
    expect(bytes.one().most).toBeLessThan(2_000_000);
  });
});

it("every class of objects has a version, or stores no rows", () => {
  const classes = Object.keys(worker).filter((key) => key.endsWith("Object"));
  const without = ["RunObject", "LaneObject"];
  expect(classes.toSorted()).toEqual([...Object.keys(CLASSES), ...without].toSorted());
});

const MADE: readonly Migration<"old" | "late">[] = [
  { version: 1, table: "old", sql: "CREATE TABLE old (id INTEGER PRIMARY KEY) STRICT" },
  { version: 1, table: "late", sql: "CREATE TABLE late (id INTEGER PRIMARY KEY) STRICT" },
];

const CHANGED: typeof MADE = [
  ...MADE,
  { version: 2, table: "old", sql: "ALTER TABLE old ADD COLUMN more TEXT NOT NULL DEFAULT 'was not there'" },
  { version: 2, table: "late", sql: "ALTER TABLE late ADD COLUMN more TEXT" },
];

/** In an object that has no tables and no version. */
function inStorage(look: (storage: DurableObjectStorage) => void): Promise<void> {
  return runInDurableObject(env.PROVIDER_BATCH.getByName(name()), (_: unknown, { storage }) => look(storage));
}

describe("the tables of an object", () => {
  it("are brought to the version of newer code once, with their rows; one that is made later has its form at once", async () => {
    await inStorage((storage) => {
      new Tables(storage, MADE).make("old");
      storage.sql.exec("INSERT INTO old (id) VALUES (1)");
      expect(storage.kv.get("schema")).toBeUndefined();
      for (const _ of [1, 2]) {
        const tables = new Tables(storage, CHANGED);
        expect([tables.has("old"), storage.kv.get("schema")]).toEqual([true, 2]);
        expect(storage.sql.exec("SELECT * FROM old").toArray()).toEqual([{ id: 1, more: "was not there" }]);
        tables.make("old", "late");
        expect(storage.sql.exec("SELECT more FROM late").toArray()).toEqual([]);
      }
      expect(() => new Tables(storage, MADE)).toThrow("storage has schema 2, this code knows 1");
    });
  });

  it("are of the version of the code that makes them, and an object without any has none", async () => {
    await inStorage((storage) => {
      const tables = new Tables(storage, CHANGED);
      expect([tables.has("old"), storage.kv.get("schema")]).toEqual([false, undefined]);
      tables.make("old");
      expect([tables.has("old"), storage.kv.get("schema")]).toEqual([true, 2]);
      expect(() => new Tables(storage, CHANGED)).not.toThrow();
    });
  });

  it("stay as they were, with their version, if a migration fails", async () => {
    await inStorage((storage) => {
      new Tables(storage, MADE).make("old");
      const broken: typeof MADE = [...CHANGED, { version: 3, table: "old", sql: "ALTER TABLE old DROP COLUMN none" }];
      expect(() => new Tables(storage, broken)).toThrow("none");
      expect(storage.kv.get("schema")).toBeUndefined();
      expect(new Tables(storage, MADE).has("old")).toBe(true);
      expect(storage.sql.exec("SELECT * FROM old").columnNames).toEqual(["id"]);
    });
  });
});
