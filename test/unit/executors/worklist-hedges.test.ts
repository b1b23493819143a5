/** Two attempts of a call at one executor: the first answer has the other aborted, which settles before it. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Outcome } from "../../../src/call.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import { HEDGE_REPORT_MS_MAX } from "../../../src/limits.ts";
import type { Settlement } from "../../../src/objects/methods/groups.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ANSWER: Outcome = { kind: "success", text: "a", model: "m", finishReason: "stop", usage: null, latencyMs: 9_000 };
const FAILED = { kind: "failure", class: "unknown", answered: false, retryAfterMs: null, latencyMs: 9_000 } as const;
const STOPPED: Outcome = { ...FAILED, reason: { reason: "cancelled", message: "stopped" } };

/** An executor with attempts that end when the test says so; `hedges`: those that are hedges, with what they may overtake. */
function started(attemptIds: readonly string[], hedges: Readonly<Record<string, string>> = {}) {
  const work = new Worklist({ callsMax: 8, waitingMax: 8, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 });
  const running = attemptIds.map((attemptId) => {
    const { promise, resolve } = Promise.withResolvers<Settlement>();
    const controller = new AbortController();
    work.add(attemptId, { model: "m", startedMs: 0, hedgeOf: hedges[attemptId] }, controller, promise);
    return { attemptId, controller, end: (outcome: Outcome) => resolve({ attemptId, outcome }) };
  });
  const isAborted = () => running.map(({ controller }) => controller.signal.aborted);
  const takeEnded = async (afterMs = 0): Promise<string[]> => {
    await vi.advanceTimersByTimeAsync(afterMs);
    return work.takeEnded().map(({ attemptId }) => attemptId);
  };
  const end = (at: number, outcome: Outcome): void => running[at]?.end(outcome);
  return { work, isAborted, takeEnded, end };
}

describe("an attempt that is answered while another of its call is in flight at the same executor", () => {
  it("has that one aborted, and no other, and settles after it", async () => {
    const { work, isAborted, takeEnded, end } = started(["7.1", "8.1", "7.2"], { "7.2": "7.1" });
    end(2, ANSWER);
    expect(await takeEnded()).toEqual([]);
    expect([isAborted(), work.running]).toEqual([[true, false, false], 3]);
    end(0, STOPPED);
    expect(await takeEnded()).toEqual(["7.1", "7.2"]);
    expect(work.attemptIds()).toEqual(["8.1"]);
  });

  it("does not wait for long for one that does not stop", async () => {
    const { takeEnded, end } = started(["7.1", "7.2"], { "7.2": "7.1" });
    end(0, ANSWER);
    expect(await takeEnded(HEDGE_REPORT_MS_MAX - 1)).toEqual([]);
    expect(await takeEnded(1)).toEqual(["7.1"]);
    end(1, STOPPED);
    expect(await takeEnded()).toEqual(["7.2"]);
  });

  it("settles with it if both were answered", async () => {
    const { takeEnded, end } = started(["7.1", "7.2"], { "7.2": "7.1" });
    end(0, ANSWER);
    end(1, ANSWER);
    expect((await takeEnded()).toSorted()).toEqual(["7.1", "7.2"]);
  });

  it("leaves it in flight if it has failed itself", async () => {
    const { isAborted, takeEnded, end } = started(["7.1", "7.2"], { "7.2": "7.1" });
    end(0, { ...FAILED, reason: { reason: "internal", message: "failed" } });
    expect([await takeEnded(), isAborted()]).toEqual([["7.1"], [false, false]]);
  });

  it("leaves the retry in flight of an attempt that the run has lost meanwhile, and whose answer comes too late", async () => {
    const { isAborted, takeEnded, end } = started(["7.1", "7.2"]);
    end(0, ANSWER);
    expect([await takeEnded(), isAborted()]).toEqual([["7.1"], [false, false]]);
    end(1, ANSWER);
    expect(await takeEnded()).toEqual(["7.2"]);
  });
});
