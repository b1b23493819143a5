import { describe, expect, it } from "vitest";
import { Reconnect } from "../../../src/executors/reconnect.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import {
  LANE_EMPTY_FAILURES_MAX,
  LANE_KEEP_MS,
  LANE_RECONNECT_FIRST_MS,
  LANE_RECONNECT_MAX_MS,
  OBJECT_OVERLOADED_RETRY_MS,
} from "../../../src/limits.ts";

const KEEPS = { keeps: true, isOverloaded: false };
const EMPTY = { keeps: false, isOverloaded: false };
const latest = (): number => 0.999_999_9;

describe("a lane whose run cannot be reached", () => {
  it("waits a random time below a limit that doubles with each failure", () => {
    const reconnect = new Reconnect();
    const delays = Array.from({ length: 10 }, () => reconnect.failed(KEEPS, 0, latest));
    expect(delays.slice(0, 4)).toEqual([99, 199, 399, 799]);
    expect(delays.at(-1)).toBe(LANE_RECONNECT_MAX_MS - 1);
    expect(reconnect.failed(KEEPS, 0, () => 0)).toBe(0);
  });

  it("leaves a run that is overloaded alone for once to twice the wait that clients are advised", () => {
    const overloaded = { keeps: true, isOverloaded: true };
    expect(new Reconnect().failed(overloaded, 0, () => 0)).toBe(OBJECT_OVERLOADED_RETRY_MS);
    const longest = new Reconnect().failed(overloaded, 0, latest) ?? 0;
    expect(longest).toBeGreaterThan(1.9 * OBJECT_OVERLOADED_RETRY_MS);
    expect(longest).toBeLessThan(2 * OBJECT_OVERLOADED_RETRY_MS + LANE_RECONNECT_FIRST_MS);
  });

  it("keeps its answers for a bounded time, counted from the first failure", () => {
    const reconnect = new Reconnect();
    expect(reconnect.failed(KEEPS, 5_000, latest)).not.toBeNull();
    expect(reconnect.failed(KEEPS, 5_000 + LANE_KEEP_MS - 1, latest)).not.toBeNull();
    expect(reconnect.failed(KEEPS, 5_000 + LANE_KEEP_MS, latest)).toBeNull();
  });

  it("stops soon without answers to deliver", () => {
    const reconnect = new Reconnect();
    for (let failures = 0; failures < LANE_EMPTY_FAILURES_MAX; failures++) {
      expect(reconnect.failed(EMPTY, 0, latest)).not.toBeNull();
    }
    expect(reconnect.failed(EMPTY, 0, latest)).toBeNull();
  });

  it("starts over once the run has replied", () => {
    const reconnect = new Reconnect();
    for (let failures = 0; failures < 8; failures++) reconnect.failed(KEEPS, 0, latest);
    reconnect.succeeded();
    expect(reconnect.failed(KEEPS, LANE_KEEP_MS, latest)).toBe(99);
  });

  it("does not wait when it is nudged by its run", async () => {
    const work = new Worklist({ callsMax: 6, waitingMax: 6, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 });
    const nudged = work.nudged();
    work.nudge();
    await expect(nudged).resolves.toBeUndefined();
    work.close();
  });
});
