import { describe, expect, it } from "vitest";
import { GateMeters } from "../../../src/gate/meters.ts";
import { GATE_UNREAD_RUNS_MAX } from "../../../src/limits.ts";

describe("the runs that may have counted more than they have reported", () => {
  it("are visited by each read until their grant is over, and once after it", () => {
    const meters = new GateMeters();
    meters.reportedBy("a", 100);
    expect([meters.takeUnread(99), meters.takeUnread(100), meters.takeUnread(101)]).toEqual([["a"], ["a"], []]);
  });

  it("are as many as their bound, the latest of them", () => {
    const meters = new GateMeters();
    for (let run = 0; run <= GATE_UNREAD_RUNS_MAX; run++) meters.reportedBy(`${run}`, 100);
    const unread = meters.takeUnread(200);
    expect([unread.length, unread[0], unread.at(-1)]).toEqual([GATE_UNREAD_RUNS_MAX, "1", `${GATE_UNREAD_RUNS_MAX}`]);
  });
});
