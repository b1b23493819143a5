/** Rows of another version: those that newer code has written, as after a deployment was rolled back, and those of older code. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { FIRST_SCHEMA_VERSION, Tables, type Migration } from "../../durable-objects/schema-version.ts";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import * as worker from "../../src/index.ts";

type Stub = DurableObjectStub<Rpc.DurableObjectBranded>;
type Class = new (ctx: DurableObjectState, objects: typeof env) => object;

const name = (): string => crypto.randomUUID();

/** Every class of objects that stores rows, but the run's, which has its version in a table; and a new object of it. */
const CLASSES: Record<string, { of: Class; stub: () => Stub }> = {
  GateObject: { of: worker.GateObject, stub: () => env.GATES.getByName(name()) },
  UpstreamObject: { of: worker.UpstreamObject, stub: () => env.UPSTREAM.getByName(name()) },
  CassetteObject: { of: worker.CassetteObject, stub: () => env.CASSETTE.getByName(name()) },
  DirectoryObject: { of: worker.DirectoryObject, stub: () => env.DIRECTORY.getByName(name()) },
  BatchObject: { of: worker.BatchObject, stub: () => env.BATCH.getByName(name()) },
  ShelfObject: { of: worker.ShelfObject, stub: () => env.SHELF.getByName(name()) },
  ProviderBatchObject: { of: worker.ProviderBatchObject, stub: () => env.PROVIDER_BATCH.getByName(name()) },
};

/** Beginning fails so that callers know that it is of no use to call again, and what to tell their clients. */
function expectNewer(begin: () => object): void {
  expect(begin).toThrow(`storage has schema ${FIRST_SCHEMA_VERSION + 1}, this code knows ${FIRST_SCHEMA_VERSION}`);
  try {
    begin();
  } catch (error) {
    expect(objectFailure(error)).toBe("newer");
  }
}

describe.each(Object.entries(CLASSES))("a %s", (_, { of: Class, stub }) => {
  it("does not begin on rows of newer code, and begins on those of its own and of none", async () => {
    await runInDurableObject(stub(), (_: unknown, state: DurableObjectState) => {
      const begin = (): object => new Class(state, env);
      expect(begin).not.toThrow();
      state.storage.kv.put("schema", FIRST_SCHEMA_VERSION);
      expect(begin).not.toThrow();
      state.storage.kv.put("schema", FIRST_SCHEMA_VERSION + 1);
      expectNewer(begin);
      // The instance that is there goes on.
      state.storage.kv.delete("schema");
    });
  });
});

it("a run does not begin on rows of newer code, and begins on its own, which are of the first version", async () => {
  await runInDurableObject(env.GATES.getByName(name()), (_: unknown, { storage }: DurableObjectState) => {
    new RunStore(storage).create();
    const version = storage.sql.exec("SELECT value FROM meta WHERE key = 'schema'").one()["value"];
    expect(version).toBe(String(FIRST_SCHEMA_VERSION));
    expect(() => new RunStore(storage)).not.toThrow();
    storage.sql.exec("UPDATE meta SET value = ? WHERE key = 'schema'", String(FIRST_SCHEMA_VERSION + 1));
    expectNewer(() => new RunStore(storage));
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
