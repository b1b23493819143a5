/** The queue of a virtual clock. */
import { describe, expect, it } from "vitest";
import { VirtualClock } from "./clock.ts";

describe("a virtual clock", () => {
  it("runs events by their time, those of one moment in their order, and none that was called off", async () => {
    const clock = new VirtualClock(1_000);
    const ran: string[] = [];
    clock.at(1_020, () => ran.push(`late at ${clock.nowMs}`));
    const never = clock.at(1_010, () => ran.push("never"));
    clock.at(1_010, () => ran.push("first"));
    clock.at(1_010, () => ran.push("second"));
    clock.callOff(never);
    await clock.run(2_000);
    expect(ran).toEqual(["first", "second", "late at 1020"]);
    expect([clock.nowMs, clock.events]).toEqual([2_000, 3]);
  });

  it("keeps the order of the others when it forgets thousands that were called off", async () => {
    const clock = new VirtualClock(0);
    const ran: number[] = [];
    const events = Array.from({ length: 30_000 }, (_, index) => {
      const atMs = (index * 7_919) % 30_000;
      return clock.at(atMs, () => ran.push(atMs));
    });
    for (const event of events) if (event.atMs % 3 !== 0) clock.callOff(event);
    // An event that has run, or that was called off before, is not counted again.
    for (const event of events) if (event.atMs % 3 === 1) clock.callOff(event);
    await clock.run(Infinity);
    expect(ran).toEqual(Array.from({ length: 10_000 }, (_, index) => index * 3));
  });
});
