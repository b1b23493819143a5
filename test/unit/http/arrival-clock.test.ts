import { describe, expect, it } from "vitest";
import { ArrivalClock } from "../../../src/http/arrival-clock.ts";
import {
  ARRIVAL_LOOK_MS,
  ARRIVAL_WATCH_MS_MAX,
  STOOD_STILL_MS_MAX,
  STOOD_STILL_MS_MIN,
  WINDOW_MS_DEFAULT,
  WINDOW_SLIDES_MAX,
} from "../../../src/limits.ts";

const WATCHED_MS = WINDOW_SLIDES_MAX * WINDOW_MS_DEFAULT;
/** The first gap between two looks that shows an instance that stood still. */
const STILL_MS = ARRIVAL_LOOK_MS + STOOD_STILL_MS_MIN + 1;

/** A clock whose first request arrived at 1,000, and its looks, every ARRIVAL_LOOK_MS unless a test says otherwise. */
function watching() {
  const clock = new ArrivalClock();
  const first = clock.arrived(1_000);
  const look = first.look ?? (() => false);
  const looksUntil = (fromMs: number, untilMs: number): void => {
    for (let atMs = fromMs + ARRIVAL_LOOK_MS; atMs <= untilMs; atMs += ARRIVAL_LOOK_MS) look(atMs);
  };
  return { clock, first, look, looksUntil };
}

describe("the clock of arrivals", () => {
  it("says the time of an instance that never stands still, and is looked at for one request only", () => {
    const { clock, first, looksUntil } = watching();
    looksUntil(1_000, 1_060);
    expect(first).toMatchObject({ arrivedAtMs: 1_000, look: expect.any(Function) });
    expect(clock.arrived(1_065)).toEqual({ arrivedAtMs: 1_065, look: null });
  });

  it("does not count the time for which the instance stood still, whoever notices it", () => {
    for (const isLook of [true, false]) {
      const { clock, look, looksUntil } = watching();
      looksUntil(1_000, 1_020);
      if (isLook) look(1_600);
      expect(clock.arrived(1_600).arrivedAtMs).toBe(1_020 + ARRIVAL_LOOK_MS);
      expect(clock.arrived(1_603).arrivedAtMs).toBe(1_023 + ARRIVAL_LOOK_MS);
    }
  });

  it("adds up such times", () => {
    const { clock, look } = watching();
    look(1_500);
    look(1_900);
    expect(clock.arrived(1_905).arrivedAtMs).toBe(1_005 + 2 * ARRIVAL_LOOK_MS);
  });

  it("takes a look that is a little late for what it is", () => {
    const { clock, look } = watching();
    look(1_000 + STILL_MS - 1);
    expect(clock.arrived(1_000 + STILL_MS - 1).arrivedAtMs).toBe(1_000 + STILL_MS - 1);
    const other = watching();
    other.look(1_000 + STILL_MS);
    expect(other.clock.arrived(1_000 + STILL_MS).arrivedAtMs).toBe(1_000 + ARRIVAL_LOOK_MS);
  });

  it("is not looked at any more once no window can be open: the next request begins anew", () => {
    const { clock, look, looksUntil } = watching();
    look(1_500);
    const overMs = 1_500 + WATCHED_MS - ARRIVAL_LOOK_MS;
    looksUntil(1_500, overMs - ARRIVAL_LOOK_MS);
    expect([look(overMs - 1), look(overMs), look(overMs + 1)]).toEqual([true, false, false]);
    expect(clock.arrived(overMs + 5)).toMatchObject({ arrivedAtMs: overMs + 5, look: expect.any(Function) });
  });

  it("counts all time once a call is answered: the next may follow from the answer", () => {
    const { clock, look } = watching();
    clock.answered();
    expect(look(1_600)).toBe(false);
    expect(clock.arrived(1_600)).toMatchObject({ arrivedAtMs: 1_600, look: expect.any(Function) });
  });

  it("is looked at by one request at a time", () => {
    const { clock, look, looksUntil } = watching();
    looksUntil(1_000, 1_190);
    const next = clock.arrived(1_205);
    expect([next.arrivedAtMs, next.look, look(1_210)]).toEqual([1_205, null, true]);
  });

  it("is looked at by the same request after an answer: under load, calls arrive and are answered all the time", () => {
    const { clock, look } = watching();
    let atMs = 1_000;
    let watches = 1;
    for (let call = 0; call < 500; call += 1) {
      atMs += 1;
      clock.answered();
      const { arrivedAtMs, look: another } = clock.arrived(atMs);
      expect(arrivedAtMs).toBe(atMs);
      if (another !== null) watches += 1;
      if (atMs % ARRIVAL_LOOK_MS === 0) look(atMs);
    }
    expect(watches).toBe(1);
  });

  it("is looked at by another request once the one that looked may have ended with its client", () => {
    const { clock, look, looksUntil } = watching();
    looksUntil(1_000, 1_020);
    clock.answered();
    expect(clock.arrived(1_020 + STILL_MS - 1).look).toBeNull();
    clock.answered();
    const next = clock.arrived(1_020 + STILL_MS);
    expect([next.look?.(1_040), look(1_041), clock.arrived(1_042).look]).toEqual([true, false, null]);
  });

  it("is looked at by one request for no longer than the platform lets it live", () => {
    const { clock, look } = watching();
    const keepOpen = (untilMs: number): boolean => {
      let goesOn = true;
      for (let atMs = 1_000 + ARRIVAL_LOOK_MS; atMs <= untilMs; atMs += ARRIVAL_LOOK_MS) {
        clock.answered();
        clock.arrived(atMs);
        goesOn = look(atMs);
      }
      return goesOn;
    };
    expect(keepOpen(1_000 + ARRIVAL_WATCH_MS_MAX - ARRIVAL_LOOK_MS)).toBe(true);
    expect(look(1_000 + ARRIVAL_WATCH_MS_MAX)).toBe(false);
    clock.answered();
    expect(clock.arrived(1_001 + ARRIVAL_WATCH_MS_MAX).look).not.toBeNull();
  });

  it("begins anew where nobody has looked for longer than an instance may stand still", () => {
    const { clock } = watching();
    const atMs = 1_000 + STOOD_STILL_MS_MAX + ARRIVAL_LOOK_MS;
    expect(clock.arrived(atMs).arrivedAtMs).toBe(1_000 + ARRIVAL_LOOK_MS);
    const late = watching().clock.arrived(atMs + 1);
    expect(late).toMatchObject({ arrivedAtMs: atMs + 1, look: expect.any(Function) });
  });
});
