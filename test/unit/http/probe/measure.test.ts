/** The probes' measurements, on a clock of the test: what they conclude of a platform with so many places. */
import { expect, it } from "vitest";
import { besideHeld, latencies, longHold, widthOf } from "../../../../src/http/probe/measure.ts";

/** A platform on which `places` fetches, and calls if they `take` one, are under way at once; time passes by itself. */
function platform({ places, callsTake = false }: { places: number; callsTake?: boolean }) {
  let nowMs = 1_000;
  let running = 0;
  const queue: { ms: number; done: () => void }[] = [];
  const ends: { atMs: number; done: () => void }[] = [];
  const fill = (): void => {
    for (let next = running < places ? queue.shift() : undefined; next !== undefined;) {
      const { ms, done } = next;
      running += 1;
      ends.push({ atMs: nowMs + ms, done: () => ((running -= 1), done()) });
      next = running < places ? queue.shift() : undefined;
    }
  };
  const pass = (): void => {
    ends.sort((a, b) => a.atMs - b.atMs);
    const first = ends.shift();
    if (first === undefined) return;
    nowMs = Math.max(nowMs, first.atMs);
    first.done();
    fill();
    setImmediate(pass);
  };
  const wait = (ms: number, takes: boolean): Promise<void> =>
    new Promise((done) => {
      if (takes) queue.push({ ms, done });
      else ends.push({ atMs: nowMs + ms, done });
      fill();
      if (ends.length > 0) setImmediate(pass);
    });
  return {
    clock: { now: () => nowMs },
    hold: async (ms: number): Promise<number> => {
      await wait(ms, true);
      return 200;
    },
    call: () => wait(3, callsTake),
  };
}

it("distinguishes a call that waits for the place of a fetch from one that does not", async () => {
  const free = platform({ places: 6 });
  expect(await besideHeld(free.clock, { held: 6, holdMs: 1_000, ...free })).toEqual({
    alone_ms: 3,
    beside_ms: 3,
    waited_for_a_fetch: false,
    answered: [200, 200, 200, 200, 200, 200],
  });
  const taken = platform({ places: 6, callsTake: true });
  expect(await besideHeld(taken.clock, { held: 6, holdMs: 1_000, ...taken })).toMatchObject({
    beside_ms: 1_003,
    waited_for_a_fetch: true,
  });
});

it.each([
  { places: 6, waves: 4 },
  { places: 12, waves: 2 },
  { places: 24, waves: 1 },
])("finds that $places of 24 fetches wait at once", async ({ places, waves }) => {
  const { clock, hold } = platform({ places });
  const measured = await widthOf(clock, { held: 24, holdMs: 500, hold });
  expect(measured).toMatchObject({ wall_ms: 500 * waves, waves, at_once: places });
});

it("reports the median and the latency that one in a hundred exceeds", async () => {
  let nowMs = 0;
  let next = 0;
  const work = async (): Promise<void> => void (nowMs += next += 1);
  expect(await latencies({ now: () => nowMs }, 200, work)).toEqual({ count: 200, p50_ms: 100, p99_ms: 198 });
  expect(await latencies({ now: () => nowMs }, 1, work)).toMatchObject({ p50_ms: 201, p99_ms: 201 });
});

it("reports how a held request ended: its status, or the error", async () => {
  const { clock, hold } = platform({ places: 1 });
  expect(await longHold(clock, { holdMs: 130_000, hold })).toEqual({
    hold_ms: 130_000,
    status: 200,
    error: null,
    took_ms: 130_000,
  });
  const broken = () => Promise.reject(new TypeError("the key is in here"));
  expect(await longHold(clock, { holdMs: 1, hold: broken })).toMatchObject({ status: null, error: "TypeError" });
});
