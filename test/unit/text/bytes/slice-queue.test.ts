/** Slices of many requests: one at a time, with a turn for all other events between any two of them. */
import { describe, expect, it } from "vitest";
import { SLICE_GONE_MS, SLICE_WAIT_MS_MAX } from "../../../../src/limits.ts";
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
      this.nowMs = Math.min(...this.#timers.map(({ atMs }) => atMs));
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
    const next = queue.next();
    await loop.run();
    await next;
    expect([loop.round, loop.nowMs]).toEqual([1, 1]);
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
