import { describe, expect, it } from "vitest";
import type { Priority } from "../../../../src/call.ts";
import { AGEING_MS, ReadyQueue, type Bucket, type BucketKey } from "../../../../src/run/queue/queue.ts";
import { seeded } from "../../../support/engine.ts";

const key = (fields: Partial<BucketKey> = {}): BucketKey => ({
  groupSeq: 1,
  upstream: "acme",
  priority: 2,
  queuedAtMs: 0,
  ...fields,
});

/** Takes everything that is ready, in order. */
function takeAll(queue: ReadyQueue, nowMs: number, eligible: (bucket: Bucket) => boolean = () => true): number[] {
  const taken: number[] = [];
  for (let bucket = queue.best(nowMs, eligible); bucket !== null; bucket = queue.best(nowMs, eligible)) {
    const slotId = queue.take(bucket);
    if (slotId !== null) taken.push(slotId);
  }
  return taken;
}

function never(): never {
  throw new Error("nothing is queued");
}

describe("the order of the ready queue", () => {
  it("is first in, first out among slots that are alike", () => {
    const queue = new ReadyQueue();
    for (const slotId of [5, 3, 9]) queue.push(key(), slotId);
    expect(takeAll(queue, 0)).toEqual([5, 3, 9]);
    expect(queue.readyCount).toBe(0);
  });

  it("puts the higher priority first", () => {
    const queue = new ReadyQueue();
    for (const priority of [0, 3, 1, 4, 2] as Priority[]) queue.push(key({ priority }), priority);
    expect(takeAll(queue, 0)).toEqual([4, 3, 2, 1, 0]);
  });

  it("puts the longer wait first at the same priority, then the older group", () => {
    const queue = new ReadyQueue();
    queue.push(key({ groupSeq: 3, queuedAtMs: 10 }), 30);
    queue.push(key({ groupSeq: 2, queuedAtMs: 20 }), 20);
    queue.push(key({ groupSeq: 1, queuedAtMs: 20 }), 10);
    expect(takeAll(queue, 100)).toEqual([30, 10, 20]);
  });

  it("raises a slot by one level per 30 seconds of waiting", () => {
    const order = (nowMs: number): number[] => {
      const queue = new ReadyQueue();
      queue.push(key({ groupSeq: 1, priority: 2, queuedAtMs: 0 }), 1);
      queue.push(key({ groupSeq: 2, priority: 3, queuedAtMs: 1 }), 2);
      return takeAll(queue, nowMs);
    };
    expect(AGEING_MS).toBe(30_000);
    expect(order(29_999)).toEqual([2, 1]);
    // Level 3 for both, and the first has waited longer.
    expect(order(30_000)).toEqual([1, 2]);
    expect(order(30_001)).toEqual([2, 1]);
  });

  it("lets nothing starve: background work precedes critical work that arrives two minutes later", () => {
    const queue = new ReadyQueue();
    queue.push(key({ priority: 0, queuedAtMs: 0 }), 1);
    queue.push(key({ groupSeq: 2, priority: 4, queuedAtMs: 120_001 }), 2);
    expect(takeAll(queue, 120_001)).toEqual([1, 2]);
  });

  it("skips buckets that are not eligible, and keeps them", () => {
    const queue = new ReadyQueue();
    queue.push(key({ upstream: "busy", priority: 4 }), 1);
    queue.push(key({ upstream: "free", priority: 0 }), 2);
    expect(takeAll(queue, 0, (bucket) => bucket.upstream === "free")).toEqual([2]);
    expect(queue.readyCount).toBe(1);
    expect(takeAll(queue, 0)).toEqual([1]);
  });

  it("is empty when nothing is queued", () => {
    expect(new ReadyQueue().best(0, () => true)).toBeNull();
  });
});

describe("the place of a group in the queue", () => {
  const queue = new ReadyQueue();
  for (const slotId of [1, 2, 3]) queue.push(key({ groupSeq: 1, queuedAtMs: 0 }), slotId);
  for (const slotId of [4, 5]) queue.push(key({ groupSeq: 2, queuedAtMs: 5 }), slotId);
  queue.push(key({ groupSeq: 2, priority: 3, queuedAtMs: 29_999 }), 6);
  queue.push(key({ groupSeq: 0, upstream: "other", priority: 4, queuedAtMs: 29_999 }), 7);
  queue.delay(key({ groupSeq: 3 }), 8, 50_000);

  it("is after the calls that start before its first one, of whatever group and line", () => {
    expect([queue.aheadOf(2, 29_999), queue.aheadOf(1, 29_999)]).toEqual([1, 2]);
    // By now the first group has waited for a level: it comes before the second one's call of the same level.
    expect([queue.aheadOf(2, 30_000), queue.aheadOf(1, 30_000)]).toEqual([4, 1]);
  });

  it("is none if the group has no call that could start, such as during the delay before a retry", () => {
    expect([queue.aheadOf(3, 49_999), queue.aheadOf(9, 0)]).toEqual([null, null]);
    queue.wake(50_000);
    expect(queue.aheadOf(3, 50_000)).toBeGreaterThan(0);
  });

  it("moves up as calls before it start", () => {
    const first = queue.best(30_000, () => true) ?? never();
    expect(queue.take(first)).toBe(7);
    expect(queue.aheadOf(1, 30_000)).toBe(0);
  });
});

describe("a long bucket", () => {
  it("keeps its order and count while it drops its used part", () => {
    const queue = new ReadyQueue();
    for (let slotId = 0; slotId < 5_000; slotId++) queue.push(key(), slotId);
    const bucket = queue.best(0, () => true);
    if (bucket === null) throw new Error("nothing is queued");
    const lengths = new Set<number>();
    for (let slotId = 0; slotId < 4_999; slotId++) {
      expect(queue.take(bucket)).toBe(slotId);
      expect(queue.readyCount).toBe(4_999 - slotId);
      lengths.add(bucket.slots.length);
    }
    expect([...lengths]).toEqual([5_000, 2_500, 1_250, 226]);
    queue.push(key(), 5_000);
    expect(takeAll(queue, 0)).toEqual([4_999, 5_000]);
  });

  it("drops nothing before 1,024 slots are used", () => {
    const queue = new ReadyQueue();
    for (let slotId = 0; slotId < 1_025; slotId++) queue.push(key(), slotId);
    const bucket = queue.best(0, () => true);
    if (bucket === null) throw new Error("nothing is queued");
    for (let taken = 1; taken < 1_024; taken++) queue.take(bucket);
    expect([bucket.slots.length, bucket.head]).toEqual([1_025, 1_023]);
    queue.take(bucket);
    expect([bucket.slots.length, bucket.head]).toEqual([1, 0]);
    expect(takeAll(queue, 0)).toEqual([1_024]);
  });

  it("is removed when it is empty, and can be added again", () => {
    const queue = new ReadyQueue();
    queue.push(key(), 1);
    const bucket = queue.best(0, () => true);
    if (bucket === null) throw new Error("nothing is queued");
    queue.take(bucket);
    expect(queue.take(bucket)).toBeNull();
    queue.push(key(), 2);
    expect(takeAll(queue, 0)).toEqual([2]);
    expect(queue.readyCount).toBe(0);
  });
});

describe("a delayed slot", () => {
  it("is ready from that time on, not before", () => {
    const queue = new ReadyQueue();
    queue.delay(key(), 1, 100);
    queue.wake(99);
    expect([queue.readyCount, queue.delayedCount, queue.nextDueMs]).toEqual([0, 1, 100]);
    queue.wake(100);
    expect([queue.readyCount, queue.delayedCount, queue.nextDueMs]).toEqual([1, 0, null]);
    expect(takeAll(queue, 100)).toEqual([1]);
  });

  it("becomes ready in the order of the delays, whatever the order of arrival", () => {
    const random = seeded(7);
    const queue = new ReadyQueue();
    const times = Array.from({ length: 500 }, () => Math.floor(random() * 200));
    times.forEach((atMs, slotId) => queue.delay(key(), slotId, atMs));
    const woken: number[] = [];
    for (let nowMs = 0; nowMs < 200; nowMs++) {
      expect(queue.nextDueMs ?? 200).toBeGreaterThanOrEqual(nowMs);
      queue.wake(nowMs);
      for (const slotId of takeAll(queue, nowMs)) {
        expect(times[slotId]).toBe(nowMs);
        woken.push(slotId);
      }
    }
    expect(woken).toHaveLength(500);
    expect(new Set(woken).size).toBe(500);
  });

  it("starts before the fresh slots of its bucket, the earliest due first", () => {
    const queue = new ReadyQueue();
    for (const slotId of [1, 2, 3]) queue.push(key(), slotId);
    queue.delay(key(), 9, 10);
    queue.delay(key(), 8, 5);
    queue.wake(4);
    expect(queue.take(queue.best(4, () => true) ?? never())).toBe(1);
    queue.wake(10);
    queue.push(key(), 4);
    queue.delay(key(), 7, 10);
    queue.wake(10);
    expect(queue.readyCount).toBe(6);
    expect(takeAll(queue, 10)).toEqual([8, 9, 7, 2, 3, 4]);
    expect(queue.readyCount).toBe(0);
  });

  it("starts after the buckets that precede its own", () => {
    const queue = new ReadyQueue();
    queue.delay(key({ groupSeq: 2, queuedAtMs: 20 }), 1, 30);
    queue.push(key({ groupSeq: 1, queuedAtMs: 10 }), 2);
    queue.wake(30);
    expect(takeAll(queue, 30)).toEqual([2, 1]);
  });

  it("starts before the fresh slots of its group in every line, and behind other groups that came before", () => {
    const queue = new ReadyQueue();
    queue.push(key({ upstream: "fresh" }), 1);
    queue.push(key({ groupSeq: 0, upstream: "fresh" }), 2);
    queue.delay(key({ upstream: "begun" }), 3, 5);
    queue.wake(5);
    expect(takeAll(queue, 5)).toEqual([2, 3, 1]);
  });

  it("can be removed while it is due", () => {
    const queue = new ReadyQueue();
    queue.delay(key(), 1, 10);
    queue.push(key(), 2);
    queue.wake(10);
    expect(queue.remove((_, slotId) => slotId === 1)).toEqual([1]);
    expect([queue.readyCount, ...takeAll(queue, 10)]).toEqual([1, 2]);
  });
});

describe("a single call that is put aside", () => {
  const CALLS = key({ groupSeq: 0 });

  /** The first of three calls is put aside. */
  function withAside(): ReadyQueue {
    const queue = new ReadyQueue();
    for (const position of [1, 2, 3]) queue.push(CALLS, position);
    queue.putAside(queue.best(0, () => true) ?? never());
    return queue;
  }

  it("stays queued, and lets the others start", () => {
    const queue = withAside();
    expect([queue.readyCount, queue.delayedCount, [...queue.aside.keys()]]).toEqual([2, 1, [1]]);
    queue.wake(1_000_000);
    expect(takeAll(queue, 1_000_000)).toEqual([2, 3]);
    expect([queue.nextDueMs, [...queue.lines()], queue.queuedOf(0)]).toEqual([
      null,
      ["acme"],
      [{ line: "acme", slotIds: [1], notBeforeMs: null }],
    ]);
  });

  it("starts before the fresh ones of its bucket, once it is resumed", () => {
    const queue = withAside();
    queue.resume(1, 10);
    queue.resume(1, 11);
    queue.wake(11);
    expect([queue.delayedCount, takeAll(queue, 11)]).toEqual([0, [1, 2, 3]]);
  });

  it("can be removed, and does not come back then", () => {
    const queue = withAside();
    expect(queue.remove((groupSeq, position) => groupSeq === 0 && position === 1)).toEqual([1]);
    queue.resume(1, 10);
    queue.wake(10);
    expect([queue.delayedCount, takeAll(queue, 10)]).toEqual([0, [2, 3]]);
  });
});

describe("removing slots", () => {
  it("finds ready and delayed slots, and leaves the others in order", () => {
    const queue = new ReadyQueue();
    for (const slotId of [1, 2, 3, 4]) queue.push(key(), slotId);
    for (const slotId of [5, 6, 7]) queue.delay(key(), slotId, 100 - slotId);
    queue.push(key({ groupSeq: 2 }), 2);
    const even = queue.remove((groupSeq, slotId) => groupSeq === 1 && slotId % 2 === 0);
    expect(even.sort()).toEqual([2, 4, 6]);
    expect([queue.readyCount, queue.delayedCount, queue.nextDueMs]).toEqual([3, 2, 93]);
    queue.wake(100);
    expect(takeAll(queue, 100)).toEqual([7, 5, 1, 3, 2]);
  });

  it("does not find slots that were taken before", () => {
    const queue = new ReadyQueue();
    for (const slotId of [1, 2, 3]) queue.push(key(), slotId);
    const bucket = queue.best(0, () => true);
    if (bucket === null) throw new Error("nothing is queued");
    queue.take(bucket);
    expect(queue.remove(() => true)).toEqual([2, 3]);
    expect([queue.readyCount, queue.best(0, () => true)]).toEqual([0, null]);
  });
});
