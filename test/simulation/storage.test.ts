/** The simulated storage of an object: values by key are in the transactions of its rows. */
import { expect, it } from "vitest";
import { ObjectStorage } from "./storage.ts";

/** A storage, and what makes its last commit durable. */
function storage(nowMs = (): number => 0): { stored: ObjectStorage; settle: () => void } {
  let durable = (): void => undefined;
  const commit = (done: () => void): void => void (durable = done);
  return { stored: new ObjectStorage({ commit, nowMs, alarmSet: () => undefined }), settle: () => durable() };
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

// Without this a simulated run lost its only alarm: attempts in flight that nobody made any more never ended, and their group waited for them.
it("keeps the alarm that was set meanwhile when an earlier one fires again, also after a crash", async () => {
  let nowMs = 0;
  const { stored, settle } = storage(() => nowMs);
  await stored.setAlarm(100);
  settle();
  nowMs = 100;
  stored.alarmFires();
  expect(stored.alarmMs).toBeNull();
  await stored.setAlarm(500);
  settle();
  stored.alarmFired();
  nowMs = 102;
  stored.alarmFires();
  expect(stored.alarmMs).toBe(500);
  stored.crash();
  expect(stored.alarmMs).toBe(500);
  nowMs = 500;
  stored.alarmFires();
  expect(stored.alarmMs).toBeNull();
});
