import { expect, it } from "vitest";
import { SHARED_LOOK_WAIT_MS } from "../../../../src/limits.ts";
import { SharedLooks } from "../../../../src/objects/clients/shared-looks.ts";

/** Looks whose results are numbers in their order, at a clock of the test's own. */
function subject(keysMax = 10, termMs = 1_000) {
  const clock = { nowMs: 0 };
  const waits: { ms: number; over: () => void; signal: AbortSignal }[] = [];
  const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((over) => void waits.push({ ms, over, signal }));
  const looks = new SharedLooks<number>({ termMs: () => termMs, keysMax, now: () => clock.nowMs, sleep });
  let made = 0;
  return { clock, get: (key: string) => looks.get(key, () => Promise.resolve((made += 1))), looks, waits };
}

it("makes one look for all who want it within its term, and the next one after it", async () => {
  const { clock, get } = subject();
  expect(await Promise.all([get("a"), get("a"), get("b"), get("a")])).toEqual([1, 1, 2, 1]);
  clock.nowMs = 999;
  expect(await get("a")).toBe(1);
  clock.nowMs = 1_000;
  expect(await Promise.all([get("a"), get("a")])).toEqual([3, 3]);
});

it("gives a result without a term to those only who wait for it", async () => {
  const { get } = subject(10, 0);
  expect(await Promise.all([get("a"), get("a")])).toEqual([1, 1]);
  expect(await get("a")).toBe(2);
});

it("keeps no look that has failed", async () => {
  const { looks, get } = subject();
  await expect(looks.get("a", () => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
  expect(await get("a")).toBe(1);
});

it("keeps so many, and forgets the oldest", async () => {
  const { get } = subject(2);
  expect([await get("a"), await get("b"), await get("c"), await get("b"), await get("a")]).toEqual([1, 2, 3, 2, 4]);
});

it("lets readers of a look that never comes make one of their own, once for all of them", async () => {
  const { get, looks, waits } = subject();
  void looks.get("a", () => new Promise<number>(() => undefined));
  const readers = [get("a"), get("a"), get("a")];
  expect(waits.map(({ ms }) => ms)).toEqual([SHARED_LOOK_WAIT_MS, SHARED_LOOK_WAIT_MS, SHARED_LOOK_WAIT_MS]);
  for (const { over } of waits) over();
  expect(await Promise.all(readers)).toEqual([1, 1, 1]);
});

it("ends the wait of a reader whose look has come", async () => {
  const { get, waits } = subject();
  expect(await Promise.all([get("a"), get("a")])).toEqual([1, 1]);
  expect(waits.map(({ signal }) => signal.aborted)).toEqual([true]);
});
