/** Rows that newer code has written, met by this code: after a deployment was rolled back, or by an object that is late. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { FIRST_SCHEMA_VERSION } from "../../durable-objects/schema-version.ts";
import * as worker from "../../src/index.ts";

type Stub = DurableObjectStub<Rpc.DurableObjectBranded>;
type Class = new (ctx: DurableObjectState, objects: typeof env) => object;

const name = (): string => crypto.randomUUID();

/** Every class of objects that stores rows, but the run's, which has versions of its own; and a new object of it. */
const CLASSES: Record<string, { of: Class; stub: () => Stub }> = {
  GateObject: { of: worker.GateObject, stub: () => env.GATES.getByName(name()) },
  UpstreamObject: { of: worker.UpstreamObject, stub: () => env.UPSTREAM.getByName(name()) },
  CassetteObject: { of: worker.CassetteObject, stub: () => env.CASSETTE.getByName(name()) },
  DirectoryObject: { of: worker.DirectoryObject, stub: () => env.DIRECTORY.getByName(name()) },
  BatchObject: { of: worker.BatchObject, stub: () => env.BATCH.getByName(name()) },
  ShelfObject: { of: worker.ShelfObject, stub: () => env.SHELF.getByName(name()) },
  ProviderBatchObject: { of: worker.ProviderBatchObject, stub: () => env.PROVIDER_BATCH.getByName(name()) },
};

describe.each(Object.entries(CLASSES))("a %s", (_, { of: Class, stub }) => {
  it("does not begin on rows of newer code, and begins on those of its own and of none", async () => {
    await runInDurableObject(stub(), (_: unknown, state: DurableObjectState) => {
      const begin = (): object => new Class(state, env);
      expect(begin).not.toThrow();
      state.storage.kv.put("schema", FIRST_SCHEMA_VERSION);
      expect(begin).not.toThrow();
      state.storage.kv.put("schema", FIRST_SCHEMA_VERSION + 1);
      const message = `storage has schema ${FIRST_SCHEMA_VERSION + 1}, this code knows ${FIRST_SCHEMA_VERSION}`;
      expect(begin).toThrow(message);
      // The instance that is there goes on.
      state.storage.kv.delete("schema");
    });
  });
});

it("every class of objects has a version, or stores no rows", () => {
  const classes = Object.keys(worker).filter((key) => key.endsWith("Object"));
  const without = ["RunObject", "LaneObject"];
  expect(classes.toSorted()).toEqual([...Object.keys(CLASSES), ...without].toSorted());
});
