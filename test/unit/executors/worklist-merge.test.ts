/** How long an executor collects answers before it settles them together. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { WorkRules } from "../../../src/executors/rules.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import {
  ATTEMPTS_PER_MERGE_MS,
  WORKER_GATHER_MS,
  WORKER_MERGE_MS,
  WORKER_SHORT_MERGE_MS,
} from "../../../src/limits.ts";
import type { Settlement } from "../../../src/objects/methods/groups.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The rules of a Worker whose headers nothing limits. */
const MERGE = { settleAtShare: 1, mergeMs: WORKER_MERGE_MS, shortMergeMs: WORKER_SHORT_MERGE_MS };
const WORKER: WorkRules = { callsMax: 512, waitingMax: 512, ...MERGE };

/** A Worker that waits for changes all the time. `end` ends attempts that have taken `latencyMs`. */
function settling() {
  const work = new Worklist(WORKER);
  const ends = new Map<string, (settlement: Settlement) => void>();
  const begin = (...ids: string[]): void => {
    for (const attemptId of ids) {
      const { promise, resolve } = Promise.withResolvers<Settlement>();
      ends.set(attemptId, resolve);
      work.add(attemptId, { model: "m", startedMs: 0 }, new AbortController(), promise);
    }
  };
  const end = async (latencyMs: number, ...ids: string[]): Promise<void> => {
    const answer = { kind: "success", text: "a", model: "m", finishReason: "stop", usage: null, latencyMs } as const;
    for (const attemptId of ids) ends.get(attemptId)?.({ attemptId, outcome: answer });
    await vi.advanceTimersByTimeAsync(0);
  };
  const fail = async (attemptId: string): Promise<void> => {
    const reason = { reason: "internal", message: "failed" } as const;
    const failed = {
      kind: "failure",
      class: "transient",
      answered: false,
      retryAfterMs: null,
      latencyMs: LONG_MS,
    } as const;
    ends.get(attemptId)?.({ attemptId, outcome: { ...failed, reason } });
    await vi.advanceTimersByTimeAsync(0);
  };
  let wakes = 0;
  const wait = (): void => {
    void work.changed().then(() => {
      wakes += 1;
    });
  };
  wait();
  /** Lets time pass. Whether the executor settles by then. */
  const passes = async (ms: number): Promise<boolean> => {
    await vi.advanceTimersByTimeAsync(ms);
    return work.mustSettle && wakes > 0;
  };
  /** Settles what has ended; returns how many. */
  const settle = (): number => {
    const { length } = work.takeEnded();
    wakes = 0;
    wait();
    return length;
  };
  return { work, begin, end, fail, passes, settle };
}

const LONG_MS = 20_000;

describe("a Worker that executes its group", () => {
  it("settles at once when all of its calls have ended", async () => {
    const { begin, end, passes, settle } = settling();
    begin("1.1", "2.1");
    await end(LONG_MS, "1.1", "2.1");
    expect(await passes(0)).toBe(true);
    expect(settle()).toBe(2);
  });

  it("waits a moment for further answers, and no longer", async () => {
    const { begin, end, passes, settle } = settling();
    begin("1.1", "2.1", "3.1");
    await end(LONG_MS, "1.1");
    expect(await passes(WORKER_MERGE_MS - 1)).toBe(false);
    await end(LONG_MS, "2.1");
    expect(await passes(1)).toBe(true);
    expect(settle()).toBe(2);
  });

  it("waits longer the more attempts it has in flight", async () => {
    const { begin, end, passes } = settling();
    const longMs = 2 * WORKER_MERGE_MS;
    begin(...Array.from({ length: longMs * ATTEMPTS_PER_MERGE_MS + 1 }, (_, index) => `${index}.1`));
    await end(LONG_MS, "0.1");
    expect(await passes(longMs - 1)).toBe(false);
    expect(await passes(1)).toBe(true);
  });

  it("waits as long for the answers after those that it has settled before their wait was over", async () => {
    const { begin, end, passes, settle } = settling();
    begin("1.1", "2.1");
    await end(LONG_MS, "1.1");
    expect(await passes(WORKER_MERGE_MS - 1)).toBe(false);
    await end(LONG_MS, "2.1");
    expect(settle()).toBe(2);
    begin("3.1", "4.1");
    await end(LONG_MS, "3.1");
    expect(await passes(WORKER_MERGE_MS - 1)).toBe(false);
    expect(await passes(1)).toBe(true);
  });

  it("waits longer while its attempts are shorter than those of any LLM, as long as the run says", async () => {
    const { work, begin, end, passes, settle } = settling();
    begin("1.1", "2.1", "3.1");
    await end(5, "1.1");
    expect(await passes(WORKER_SHORT_MERGE_MS - 1)).toBe(false);
    expect(await passes(1)).toBe(true);
    settle();
    work.setBatchingDelay(WORKER_SHORT_MERGE_MS * 2);
    await end(5, "2.1");
    expect(await passes(WORKER_SHORT_MERGE_MS * 2 - 1)).toBe(false);
    expect(await passes(1)).toBe(true);
  });

  it("gathers answers for longer while only the end of all waits for them, but not the last one", async () => {
    const { work, begin, end, passes, settle } = settling();
    begin("1.1", "2.1", "3.1");
    work.setGathering(true);
    await end(LONG_MS, "1.1");
    await end(5, "2.1");
    expect(await passes(WORKER_GATHER_MS - 1)).toBe(false);
    expect(await passes(1)).toBe(true);
    expect(settle()).toBe(2);
    await end(LONG_MS, "3.1");
    expect(await passes(0)).toBe(true);
  });

  it("gathers no longer once slots wait, or an attempt has failed that may be made again", async () => {
    for (const stop of ["slots", "failure"] as const) {
      const { work, begin, end, fail, passes } = settling();
      begin("1.1", "2.1", "3.1");
      work.setGathering(true);
      await end(LONG_MS, "1.1");
      expect(await passes(WORKER_MERGE_MS)).toBe(false);
      if (stop === "slots") work.setGathering(false);
      else await fail("2.1");
      expect(await passes(WORKER_MERGE_MS - 1)).toBe(false);
      expect(await passes(1)).toBe(true);
    }
  });

  it("waits no second time for what may not have arrived", async () => {
    const { work, begin, end, passes } = settling();
    begin("1.1", "2.1");
    await end(LONG_MS, "1.1");
    await passes(WORKER_MERGE_MS);
    work.putBack(work.takeEnded());
    expect(await passes(0)).toBe(true);
  });
});
