/** Slices of many requests: one at a time, with a turn for all other events between any two of them. */
import { describe, expect, it } from "vitest";
import { SLICE_GONE_MS, SLICE_REST_MS_MAX, SLICE_WAIT_MS_MAX, SMALL_REQUEST_MS_MAX } from "../../../../src/limits.ts";
import { SliceQueue, SmallRequests } from "../../../../src/text/bytes/slices.ts";

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

/** When slices began and how long the loop was free between two of them, ms. Each takes `tookMs` of the loop's clock. */
async function restsOf(loop: Loop, queue: SliceQueue, { requests, slices, tookMs }: Load): Promise<number[]> {
  const rests: number[] = [];
  let endedMs: number | null = null;
  const request = async (): Promise<void> => {
    for (let slice = 0; slice < slices; slice += 1) {
      await queue.next();
      if (endedMs !== null) rests.push(loop.nowMs - endedMs);
      // The clock goes on, and no timer comes.
      loop.nowMs += tookMs;
      endedMs = loop.nowMs;
    }
  };
  const all = Promise.all(Array.from({ length: requests }, request));
  await loop.run();
  await all;
  return rests;
}

type Load = { requests: number; slices: number; tookMs: number };

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

  it("begin one in a round of events however long they have waited", async () => {
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs });
    const rounds: number[] = [];
    const all = Promise.all(
      Array.from({ length: 24 }, async () => {
        await queue.next();
        rounds.push(loop.round);
        // Together they take longer than one may wait.
        loop.nowMs += SLICE_WAIT_MS_MAX / 8;
      }),
    );
    await loop.run();
    await all;
    expect(new Set(rounds).size).toBe(24);
  });

  it("rest as long as the last has taken while small requests are on their way, and only then", async () => {
    for (const isShared of [true, false]) {
      const loop = new Loop();
      const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs, isShared: () => isShared });
      const rests = await restsOf(loop, queue, { requests: 3, slices: 4, tookMs: 8 });
      expect(rests).toHaveLength(11);
      if (isShared) expect(Math.min(...rests)).toBeGreaterThanOrEqual(8);
      expect(Math.max(...rests)).toBeLessThanOrEqual(isShared ? 11 : 3);
    }
  });

  it("do not rest after one that was held up by others, nor for what has ended meanwhile", async () => {
    const heldUp = new Loop();
    const busy = new SliceQueue({ sleep: heldUp.sleep, now: () => heldUp.nowMs, isShared: () => true });
    const load = { requests: 1, slices: 2, tookMs: 2 * SLICE_REST_MS_MAX };
    expect(await restsOf(heldUp, busy, load)).toEqual([1]);
    const loop = new Loop();
    const queue = new SliceQueue({ sleep: loop.sleep, now: () => loop.nowMs, isShared: (nowMs) => nowMs < 10 });
    const [rest = Infinity] = await restsOf(loop, queue, { requests: 2, slices: 1, tookMs: 20 });
    expect(rest).toBeLessThanOrEqual(3);
  });

  it("do not rest until a clock that was set back has caught up", async () => {
    const loop = new Loop();
    let backMs = 0;
    const now = (): number => loop.nowMs - backMs;
    const queue = new SliceQueue({ sleep: loop.sleep, now, isShared: () => true });
    const begun: number[] = [];
    const request = async (): Promise<void> => {
      await queue.next();
      begun.push(loop.nowMs);
      loop.nowMs += 20;
    };
    const all = Promise.all([request(), request(), request()]);
    // After the first two, an hour back.
    const setBack = loop.sleep(50).then(() => (backMs = 3_600_000));
    await loop.run();
    await all;
    await setBack;
    expect(Math.max(...begun)).toBeLessThanOrEqual(SLICE_WAIT_MS_MAX + 200);
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

describe("small requests", () => {
  it("are on their way until they end, and a lost one for a second", () => {
    const requests = new SmallRequests();
    expect(requests.areUnderWay(0)).toBe(false);
    const end = requests.begin(0);
    requests.begin(10);
    expect(requests.areUnderWay(10)).toBe(true);
    end();
    end();
    expect(requests.areUnderWay(9 + SMALL_REQUEST_MS_MAX)).toBe(true);
    expect(requests.areUnderWay(10 + SMALL_REQUEST_MS_MAX)).toBe(false);
    // The clock is set back after one has come.
    requests.begin(3_600_000);
    expect(requests.areUnderWay(0)).toBe(false);
  });
});
