import { describe, expect, it } from "vitest";
import { Reconnect } from "../../../src/execute/reconnect.ts";
import { Worklist } from "../../../src/execute/worklist.ts";
import { LANE_EMPTY_FAILURES_MAX, LANE_KEEP_MS, LANE_RECONNECT_MAX_MS } from "../../../src/limits.ts";

const latest = (): number => 0.999_999_9;

describe("a lane whose run cannot be reached", () => {
  it("waits a random time below a limit that doubles with each failure", () => {
    const reconnect = new Reconnect();
    const delays = Array.from({ length: 10 }, () => reconnect.failed(true, 0, latest));
    expect(delays.slice(0, 4)).toEqual([99, 199, 399, 799]);
    expect(delays.at(-1)).toBe(LANE_RECONNECT_MAX_MS - 1);
    expect(reconnect.failed(true, 0, () => 0)).toBe(0);
  });

  it("keeps its answers for a bounded time, counted from the first failure", () => {
    const reconnect = new Reconnect();
    expect(reconnect.failed(true, 5_000, latest)).not.toBeNull();
    expect(reconnect.failed(true, 5_000 + LANE_KEEP_MS - 1, latest)).not.toBeNull();
    expect(reconnect.failed(true, 5_000 + LANE_KEEP_MS, latest)).toBeNull();
  });

  it("stops soon without answers to deliver", () => {
    const reconnect = new Reconnect();
    for (let failures = 0; failures < LANE_EMPTY_FAILURES_MAX; failures++) {
      expect(reconnect.failed(false, 0, latest)).not.toBeNull();
    }
    expect(reconnect.failed(false, 0, latest)).toBeNull();
  });

  it("starts over once the run has replied", () => {
    const reconnect = new Reconnect();
    for (let failures = 0; failures < 8; failures++) reconnect.failed(true, 0, latest);
    reconnect.succeeded();
    expect(reconnect.failed(true, LANE_KEEP_MS, latest)).toBe(99);
  });

  it("does not wait when it is nudged by its run", async () => {
    const work = new Worklist({ callsMax: 6, waitingMax: 6, settleAtShare: 1, mergeMs: null });
    const nudged = work.nudged();
    work.nudge();
    await expect(nudged).resolves.toBeUndefined();
    work.close();
  });
});
