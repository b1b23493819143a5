import { describe, expect, it } from "vitest";
import { Fullness } from "../../../src/executors/fullness.ts";
import { Paces } from "../../../src/executors/paces.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import { LANES_JOIN_MS } from "../../../src/limits.ts";
import type { Settlement } from "../../../src/objects/methods/groups.ts";
import { success } from "../../support/engine.ts";

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
  const ends = new Map<string, () => void>();
  const begin = (attemptId: string): void => {
    const { promise, resolve } = Promise.withResolvers<Settlement>();
    ends.set(attemptId, () => resolve({ attemptId, outcome: success() }));
    work.add(attemptId, { model: "m", startedMs: nowMs }, new AbortController(), promise);
  };
  const end = async (attemptId: string): Promise<void> => {
    ends.get(attemptId)?.();
    await Promise.resolve();
    await Promise.resolve();
  };
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
  return {
    work,
    fullness,
    begin,
    end,
    pass,
    late,
    nudges: () => nudges,
    timers: () => timers.length,
    now: () => nowMs,
  };
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

  it("reports six at last also of a model whose calls are known to last for minutes", () => {
    const paces = new Paces();
    paces.headersArrived("m", 1_000);
    paces.answered("m", 120_000);
    const { fullness, work, pass } = makeFull(paces);
    fullness.note(true, work);
    const reported: number[] = [];
    for (let step = 0; step < 60; step++) {
      pass(1_000);
      if (!fullness.mustReport || fullness.reach === null) continue;
      reported.push(fullness.reach);
      fullness.reported(fullness.reach);
    }
    expect(reported[0]).toBe(64);
    expect(reported.at(-1)).toBe(6);
    expect(reported.length).toBeLessThanOrEqual(12);
  });

  it("reports how few it holds once calls have ended while the headers of others do not come", async () => {
    const { fullness, work, begin, end, pass, now } = makeFull();
    // As many as it may hold, of which three wait for headers.
    for (let at = 6; at < 64; at++) begin(`${at}.1`);
    for (let at = 0; at < 61; at++) work.headersArrived(`${at}.1`, now());
    fullness.note(true, work);
    pass(20_000);
    fullness.reported(fullness.reach ?? 0);
    expect([fullness.reach, fullness.mustReport]).toEqual([64, false]);
    // Three more begin in the place of others, and then the rest ends: nothing but six that wait is left.
    for (let at = 0; at < 3; at++) {
      await end(`${at}.1`);
      begin(`${at + 64}.1`);
    }
    for (let at = 3; at < 61; at++) await end(`${at}.1`);
    expect([work.running, work.room]).toEqual([6, 0]);
    pass(10_000);
    expect([fullness.reach, fullness.mustReport]).toEqual([6, true]);
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
