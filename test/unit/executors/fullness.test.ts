import { describe, expect, it } from "vitest";
import { Fullness } from "../../../src/executors/fullness.ts";
import { Paces } from "../../../src/executors/paces.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import { LANES_JOIN_MS } from "../../../src/limits.ts";

/** An executor with six fetches that may wait, its clock, and how often it was made to claim. */
function makeFull(paces = new Paces()) {
  let nowMs = 1_000;
  let nudges = 0;
  let timers: { atMs: number; callback: () => void }[] = [];
  const work = new Worklist({ callsMax: 64, waitingMax: 6, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 }, paces);
  const fullness = new Fullness({
    now: () => nowMs,
    nudge: () => void (nudges += 1),
    after: (ms, callback) => {
      const timer = { atMs: nowMs + ms, callback };
      timers.push(timer);
      return () => void (timers = timers.filter((each) => each !== timer));
    },
  });
  const begin = (attemptId: string): void =>
    work.add(attemptId, { model: "m", startedMs: nowMs }, new AbortController(), new Promise(() => undefined));
  const pass = (ms: number): void => {
    for (const untilMs = nowMs + ms; ;) {
      const due = timers.filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      nowMs = Math.max(nowMs, due?.atMs ?? untilMs);
      if (due === undefined) return;
      timers = timers.filter((each) => each !== due);
      due.callback();
    }
  };
  /** The clock goes on before the timers that are due go off. */
  const late = (ms: number): void => {
    nowMs += ms;
    pass(0);
  };
  for (let at = 0; at < 6; at++) begin(`${at}.1`);
  return { work, fullness, begin, pass, late, nudges: () => nudges, timers: () => timers.length, now: () => nowMs };
}

describe("an executor whose six fetches wait for headers while slots wait", () => {
  it("has nothing to report before it has been full for a moment", () => {
    const { fullness, work, pass, nudges } = makeFull();
    fullness.note(true, work);
    pass(LANES_JOIN_MS - 1);
    expect([fullness.reach, fullness.mustReport, nudges()]).toEqual([null, false, 0]);
    pass(1);
    expect([fullness.reach, fullness.mustReport, nudges()]).toEqual([64, true, 1]);
  });

  it("reports each time that it reaches a quarter less, down to six", () => {
    const { fullness, work, pass } = makeFull();
    fullness.note(true, work);
    const reported: number[] = [];
    for (let step = 0; step < 1_000; step++) {
      pass(5);
      if (!fullness.mustReport || fullness.reach === null) continue;
      reported.push(fullness.reach);
      fullness.reported(fullness.reach);
    }
    expect(reported).toEqual([64, 47, 23, 11, 6]);
  });

  it("reports the least that it reaches, although a look on a busy machine came late and found hardly more", () => {
    const { fullness, work, pass, late } = makeFull();
    fullness.note(true, work);
    const reported: number[] = [];
    const report = (): void => {
      if (!fullness.mustReport || fullness.reach === null) return;
      reported.push(fullness.reach);
      fullness.reported(fullness.reach);
    };
    pass(2 ** 8 * LANES_JOIN_MS - LANES_JOIN_MS - 1);
    report();
    late(700);
    report();
    pass(60_000);
    report();
    expect(reported).toEqual([23, 7, 6]);
  });

  it("reports six at once for a model that answers with JSON", () => {
    const paces = new Paces();
    paces.requests("m", true);
    const { fullness, work, pass } = makeFull(paces);
    fullness.note(true, work);
    pass(LANES_JOIN_MS);
    expect(fullness.reach).toBe(6);
  });

  it("counts how long no headers have come, not how long it has been full", () => {
    const { fullness, work, begin, pass, now } = makeFull();
    fullness.note(true, work);
    for (let at = 0; at < 8; at++) {
      pass(50);
      work.headersArrived(`${at}.1`, now());
      begin(`${at + 6}.1`);
      fullness.note(true, work);
    }
    // After 315 ms without headers it would be 47.
    expect(fullness.reach).toBe(64);
  });

  it("sets no timer once it has room, or has ended", () => {
    const { fullness, work, pass, timers } = makeFull();
    fullness.note(true, work);
    fullness.note(false, work);
    pass(10_000);
    expect([fullness.reach, timers()]).toEqual([null, 0]);
    fullness.note(true, work);
    fullness.close();
    expect(timers()).toBe(0);
  });
});
