/** When an executor claims for places of fetches that wait for headers no longer. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Worklist } from "../../../src/executors/worklist.ts";
import { ROOM_MERGE_MS, ROOM_TOGETHER_MS, WAITING_FETCHES_DEFAULT } from "../../../src/limits.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An executor that waits for headers with as many fetches as may, and wants more; its wakes are counted. */
async function waiting(waitingMax: number) {
  const work = new Worklist({ callsMax: 1_000, waitingMax, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 });
  for (let at = 0; at < waitingMax; at++) {
    const begun = { model: "m", startedMs: 0 };
    work.add(String(at), begun, new AbortController(), new Promise(() => undefined));
  }
  let wakes = 0;
  const wait = (): void => {
    void work.changed(true).then(() => {
      wakes += 1;
    });
  };
  wait();
  const pass = async (ms: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(ms);
    return wakes;
  };
  const headers = (...ids: number[]): void => {
    for (const id of ids) work.headersArrived(String(id), 0);
  };
  return { headers, pass, wait };
}

describe(`an executor with ${WAITING_FETCHES_DEFAULT} fetches that wait for headers`, () => {
  it("claims at once when all headers have come together", async () => {
    const { headers, pass } = await waiting(6);
    headers(0, 1, 2, 3, 4, 5);
    expect(await pass(0)).toBe(1);
  });

  it("waits a moment for the others when half have come, and no longer", async () => {
    const { headers, pass } = await waiting(6);
    headers(0, 1, 2);
    expect(await pass(ROOM_TOGETHER_MS - 1)).toBe(0);
    headers(3);
    expect(await pass(1)).toBe(1);
  });

  it("waits longer for a half, and no longer than that for any", async () => {
    const { headers, pass } = await waiting(6);
    headers(0, 1);
    expect(await pass(ROOM_MERGE_MS - 1)).toBe(0);
    expect(await pass(1)).toBe(1);
  });

  it("shortens its wait when a half has come meanwhile", async () => {
    const { headers, pass } = await waiting(6);
    headers(0);
    expect(await pass(ROOM_MERGE_MS / 2)).toBe(0);
    headers(1, 2);
    expect(await pass(ROOM_TOGETHER_MS)).toBe(1);
  });

  it("is not woken once more by a wait that is over", async () => {
    const { headers, pass, wait } = await waiting(6);
    headers(0);
    headers(1, 2, 3, 4, 5);
    expect(await pass(0)).toBe(1);
    wait();
    expect(await pass(2 * ROOM_MERGE_MS)).toBe(1);
  });
});

describe("an executor whose fetches nothing limits", () => {
  it("claims as soon as half of its places are free", async () => {
    const { headers, pass } = await waiting(512);
    headers(...Array.from({ length: 256 }, (_, at) => at));
    expect(await pass(0)).toBe(1);
  });
});
