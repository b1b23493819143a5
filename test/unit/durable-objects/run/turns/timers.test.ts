import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Timer } from "../../../../../durable-objects/run/turns/timers.ts";

describe("a timer of a run object", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000 }));
  afterEach(() => void vi.useRealTimers());

  it("says once how late it went off", () => {
    const timer = new Timer(() => {});
    timer.set(1_050, Date.now());
    // The process stands still: the clock goes on, and no timer goes off.
    vi.setSystemTime(1_600);
    vi.advanceTimersByTime(50);
    expect([timer.takeLateMs(Date.now()), timer.takeLateMs(Date.now())]).toEqual([600, 0]);
  });

  it("says how late it is before it goes off", () => {
    const timer = new Timer(() => {});
    timer.set(1_050, Date.now());
    expect(timer.takeLateMs(1_040)).toBe(0);
    expect(timer.takeLateMs(1_090)).toBe(40);
  });

  it("is not late where it goes off in time, or is not set", () => {
    const timer = new Timer(() => {});
    timer.set(1_050, Date.now());
    vi.advanceTimersByTime(50);
    expect(timer.takeLateMs(9_000)).toBe(0);
  });
});
