/** The simulated storage of an object: values by key are in the transactions of its rows. */
import { expect, it } from "vitest";
import { ObjectStorage } from "./storage.ts";

/** A storage, and what makes its last commit durable. */
function storage(): { stored: ObjectStorage; settle: () => void } {
  let durable = (): void => undefined;
  const commit = (done: () => void): void => void (durable = done);
  return { stored: new ObjectStorage({ commit, nowMs: () => 0, alarmSet: () => undefined }), settle: () => durable() };
}

it("keeps values by key, as copies, and makes no table for one that is read only", () => {
  const { stored } = storage();
  expect(stored.kv.get("job")).toBeUndefined();
  expect(stored.kv.delete("job")).toBe(false);
  expect(stored.isEmpty).toBe(true);
  const job = { ids: [1, 2], state: null };
  stored.kv.put("job", job);
  job.ids.push(3);
  expect(stored.kv.get("job")).toEqual({ ids: [1, 2], state: null });
  expect(stored.isEmpty).toBe(false);
  stored.kv.put("job", 2);
  expect(stored.kv.get("job")).toBe(2);
  expect(stored.kv.delete("job")).toBe(true);
  expect(stored.kv.get("job")).toBeUndefined();
});

it("takes back in a crash what was not durable, and in a transaction that throws what it wrote", () => {
  const { stored, settle } = storage();
  stored.kv.put("job", 1);
  settle();
  stored.kv.put("job", 2);
  stored.crash();
  expect(stored.kv.get("job")).toBe(1);
  const fails = (): void => {
    stored.kv.put("job", 3);
    throw new Error("it fails");
  };
  expect(() => stored.transactionSync(fails)).toThrow("it fails");
  expect(stored.kv.get("job")).toBe(1);
});

it("has no value once everything is deleted", async () => {
  const { stored } = storage();
  stored.kv.put("job", 1);
  await stored.deleteAll();
  expect(stored.kv.get("job")).toBeUndefined();
});
