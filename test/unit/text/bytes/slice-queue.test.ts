/** Slices of many requests: one at a time, with a turn for all other events between any two of them. */
import { describe, expect, it } from "vitest";
import { SLICE_GONE_MS, SLICE_REST_MS_MAX, SLICE_WAIT_MS_MAX } from "../../../../src/limits.ts";
import { SliceQueue } from "../../../../src/text/bytes/slices.ts";

/** An event loop with a clock of its own: all timers that are due are one round. */
class Loop {
  nowMs = 0;
  round = 0;
  #timers: { atMs: number; fire: () => void }[] = [];

  readonly sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => this.#timers.push({ atMs: this.nowMs + Math.max(1, ms), fire: resolve }));

  /** Runs until no timer is left. */
  async run(): Promise<void> {
    while (this.#timers.length > 0) {
      // Work may have taken longer than until a timer was due.
      this.nowMs = Math.max(this.nowMs, Math.min(...this.#timers.map(({ atMs }) => atMs)));
      this.round += 1;
      const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs);
      this.#timers = this.#timers.filter(({ atMs }) => atMs > this.nowMs);
      for (const { fire } of due) {
        fire();
        for (let ticks = 0; ticks < 10; ticks += 1) await Promise.resolve();
      }
    }
  }
}

describe("slices", () => {
  it("of many requests begin one in a round of events, in turns", async () => {
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
    const rounds: number[] = [];
    const order: number[] = [];
    const request = async (id: number): Promise<void> => {
      for (let slice = 0; slice < 5; slice += 1) {
        await queue.next();
        rounds.push(loop.round);
        order.push(id);
      }
    };
    const all = Promise.all(Array.from({ length: 24 }, (_, id) => request(id)));
    await loop.run();
    await all;
    expect(rounds).toHaveLength(24 * 5);
    expect(new Set(rounds).size).toBe(rounds.length);
    // Nobody has a second slice before everybody has had a first.
    expect(new Set(order.slice(0, 24)).size).toBe(24);
  });

  it("of a lone request begin with the next event", async () => {
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
    const begun = queue.next().then(() => [loop.round, loop.nowMs]);
    await loop.run();
    expect(await begun).toEqual([1, 1]);
  });

  it("rest between two as long as the first has taken, so that a small request makes many steps for one slice", async () => {
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
    const SLICE_MS = 7;
    /** When slices have begun, and ended. */
    const slices: { beganMs: number; endedMs: number }[] = [];
    const request = async (): Promise<void> => {
      for (let slice = 0; slice < 4; slice += 1) {
        await queue.next();
        const beganMs = loop.nowMs;
        // The clock goes on, and no timer comes.
        loop.nowMs += SLICE_MS;
        slices.push({ beganMs, endedMs: loop.nowMs });
      }
    };
    const all = Promise.all([request(), request(), request()]);
    await loop.run();
    await all;
    const rests = slices.slice(1).map(({ beganMs }, before) => beganMs - (slices[before]?.endedMs ?? 0));
    expect(rests).toHaveLength(11);
    expect(Math.min(...rests)).toBeGreaterThanOrEqual(SLICE_MS);
    expect(Math.max(...rests)).toBeLessThanOrEqual(SLICE_MS + 2);
  });

  it("rest no longer than they may after one that was held up, and not at all after a short one", async () => {
    for (const [tookMs, restMs] of [
      [1_000, SLICE_REST_MS_MAX],
      [0, 0],
    ] as const) {
      const loop = new Loop();
      const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
      const began: number[] = [];
      const request = async (): Promise<void> => {
        await queue.next();
        began.push(loop.nowMs);
        loop.nowMs += tookMs;
      };
      const all = Promise.all([request(), request()]);
      await loop.run();
      await all;
      const [first = 0, second = 0] = began;
      const rest = second - first - tookMs;
      expect([rest >= restMs, rest <= restMs + 4]).toEqual([true, true]);
    }
  });

  it("begin at once when the rest of the last one is over", async () => {
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
    const first = queue.next().then(() => (loop.nowMs += 10));
    await loop.run();
    await first;
    loop.nowMs += SLICE_REST_MS_MAX;
    const sentMs = loop.nowMs;
    const waited = queue.next().then(() => loop.nowMs - sentMs);
    await loop.run();
    expect(await waited).toBe(1);
  });

  it("do not wait for a request that was cancelled, nor longer than they may", async () => {
    const loop = new Loop();
    let isCancelled = true;
    const never = new Promise<void>(() => undefined);
    const sleep = (ms: number): Promise<void> => (isCancelled ? never : loop.sleep(ms));
    const queue = new SliceQueue({ sleep, now: () => loop.nowMs });
    void queue.next();
    isCancelled = false;
    const waits: number[] = [];
    const all = Promise.all(
      Array.from({ length: 8 }, async () => {
        await queue.next();
        waits.push(loop.nowMs);
      }),
    );
    await loop.run();
    await all;
    expect(waits[0]).toBeLessThanOrEqual(SLICE_GONE_MS + 10);
    expect(Math.max(...waits)).toBeLessThanOrEqual(SLICE_WAIT_MS_MAX + 60);
  });
});
