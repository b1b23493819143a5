import { describe, expect, it } from "vitest";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { workerOf } from "../../../../../src/run/leases/shard.ts";
import { SIGNALLED_CLAIM_MS } from "../../../../../src/limits.ts";

describe("an executor at a socket", () => {
  it("is sent that slots wait once until it claims", () => {
    const present = new PresentExecutors();
    present.opened(0);
    expect([present.notes(0, "slots", 0), present.notes(0, "slots", 0)]).toEqual([true, false]);
    present.claimed(0);
    expect(present.notes(0, "slots", 0)).toBe(true);
  });

  it("is sent that it must claim also after it was sent that slots wait, and nothing after that", () => {
    const present = new PresentExecutors();
    present.opened(0);
    present.notes(0, "slots", 0);
    expect([present.notes(0, "changed", 0), present.notes(0, "changed", 0), present.notes(0, "slots", 0)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("is sent nothing without a socket, even if it claims", () => {
    const present = new PresentExecutors();
    present.claimed(0);
    expect([present.has(0), present.notes(0, "changed", 0)]).toEqual([false, false]);
    present.opened(0);
    present.closed(0);
    expect([present.size, present.notes(0, "changed", 0)]).toEqual([0, false]);
  });

  it("is a lane or a Worker", () => {
    const present = new PresentExecutors();
    present.opened(workerOf(1));
    expect([...present.lanes()]).toEqual([]);
    present.opened(3);
    expect([[...present.lanes()], [...present.workers()], present.size]).toEqual([[3], [workerOf(1)], 2]);
  });

  it("is known to have room from the reply to its claim until its next, also if its socket is renewed", () => {
    const present = new PresentExecutors();
    expect([present.replied(0, 3), present.roomOf(0)]).toEqual([false, null]);
    present.opened(0);
    expect([present.roomOf(0), present.replied(0, 3), present.roomOf(0)]).toEqual([null, true, 3]);
    present.opened(0);
    expect(present.roomOf(0)).toBe(3);
    present.claimed(0);
    expect(present.roomOf(0)).toBeNull();
    present.replied(0, -1);
    expect(present.roomOf(0)).toBe(0);
  });

  it("is late once it has been signalled for long and has not claimed, exactly then", () => {
    const present = new PresentExecutors();
    present.opened(0);
    present.opened(1);
    expect(present.nextLateMs(100)).toBeNull();
    present.notes(1, "slots", 90);
    present.notes(0, "slots", 100);
    const lateMs = 100 + SIGNALLED_CLAIM_MS;
    expect([present.isLate(0, lateMs - 1), present.isLate(0, lateMs)]).toEqual([false, true]);
    expect([present.nextLateMs(100), present.nextLateMs(lateMs - 1), present.nextLateMs(lateMs)]).toEqual([
      lateMs - 10,
      lateMs,
      null,
    ]);
    present.claimed(0);
    expect([present.isSignalled(0), present.isLate(0, lateMs)]).toEqual([false, false]);
  });

  it("is not looked for when it is a Worker: it is signalled whether others are or not", () => {
    const present = new PresentExecutors();
    present.opened(workerOf(1));
    present.notes(workerOf(1), "slots", 100);
    expect(present.nextLateMs(100)).toBeNull();
  });
});
