import { describe, expect, it } from "vitest";
import { LoneCalls } from "../../../../src/objects/clients/lone-calls.ts";

const alone = (windowOpenedAtMs: number | null) => ({ parallelGroupId: null, windowOpenedAtMs });
const grouped = (windowOpenedAtMs: number, parallelGroupId = "pg-1") => ({ parallelGroupId, windowOpenedAtMs });

describe("a call that is alone in its window", () => {
  it("learns its group from the second call of the window", () => {
    const calls = new LoneCalls();
    const first = calls.add("run", alone(5));
    calls.add("run", grouped(5));
    expect([first.parallelGroupId, calls.size]).toEqual(["pg-1", 0]);
  });

  it("learns its group from a stored call of the window", () => {
    const calls = new LoneCalls();
    const first = calls.add("run", alone(5));
    calls.joined("run", alone(5));
    calls.joined("run", grouped(6));
    expect([first.parallelGroupId, calls.size]).toEqual([null, 1]);
    calls.joined("run", grouped(5));
    expect([first.parallelGroupId, calls.size]).toEqual(["pg-1", 0]);
  });

  it("learns nothing from another window, or another run", () => {
    const calls = new LoneCalls();
    const first = calls.add("run", alone(5));
    calls.add("run", grouped(6));
    calls.add("other", grouped(5));
    expect([first.parallelGroupId, calls.size]).toEqual([null, 1]);
  });

  it("is forgotten when it has ended", () => {
    const calls = new LoneCalls();
    const first = calls.add("run", alone(5));
    calls.remove("run", first);
    calls.add("run", grouped(5));
    expect([first.parallelGroupId, calls.size]).toEqual([null, 0]);
  });

  it("leaves the next call of its window in place when it ends", () => {
    const calls = new LoneCalls();
    const first = calls.add("run", alone(5));
    const retried = calls.add("run", alone(5));
    calls.remove("run", first);
    calls.add("run", grouped(5));
    expect(retried.parallelGroupId).toBe("pg-1");
  });

  it("is not kept if its window is not known", () => {
    const calls = new LoneCalls();
    calls.remove("run", calls.add("run", alone(null)));
    expect(calls.size).toBe(0);
  });
});
