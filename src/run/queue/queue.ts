/**
 * The ready queue. Order: priority with ageing, then the longer wait, then the older group, then the position in the
 * group. Slots that are alike (same group, priority, upstream, executor) share a bucket, so choosing one compares the
 * heads of a few buckets, and a queued slot costs eight bytes. Slots that must wait for a retry's delay are in a heap
 * by time. Once due, they start before the fresh slots of their group: they came first, what their earlier attempts have
 * cost is lost if they miss their deadline, and few conversations are open at once.
 */
import TinyQueue from "tinyqueue";
import type { Priority } from "../../call.ts";
import { RenewedMap } from "../../renewed/map.ts";

/** A waiting slot gains one priority level per this many ms, so nothing starves. */
export const AGEING_MS = 30_000;

/**
 * What the slots of one bucket have in common. `groupSeq` 0: single calls, which their own Workers execute. `upstream`: the
 * line that they wait in (src/run/gates/route-keys.ts), which is their upstream unless they may go to several.
 */
export type BucketKey = {
  groupSeq: number;
  upstream: string;
  priority: Priority;
  queuedAtMs: number;
  /** Set if fresh slots start by rank, the largest first, then by id; absent = in the order in which they were queued. */
  rankOf?: (slotId: number) => number;
};

/** `due`: slots whose delay is over, earliest first. The fresh ones are in `slots`, from `head` on; with ranks, in `ranked`. */
export type Bucket = BucketKey & { due: number[]; slots: number[]; head: number; ranked: TinyQueue<number> | null };

/** The slot of a bucket that starts next. */
export function headOf(bucket: Bucket): number | undefined {
  return bucket.due[0] ?? (bucket.ranked === null ? bucket.slots[bucket.head] : bucket.ranked.peek());
}

/** How many slots of a bucket could start. */
function countOf({ due, slots, head, ranked }: Bucket): number {
  return due.length + (ranked === null ? slots.length - head : ranked.length);
}

/** Slots of one group that wait in the same line; `notBeforeMs`: until then for their retry, null = they could start now. */
export type QueuedSlots = { line: string; slotIds: number[]; notBeforeMs: number | null };

type Delayed = { notBeforeMs: number; key: BucketKey; slotId: number };

export class ReadyQueue {
  #buckets = new Map<string, Bucket>();
  #delayed = delayedOnes();
  /** Single calls that start no sooner than their Workers are back, by their position. */
  readonly #aside = new RenewedMap<number, BucketKey>();
  #readyCount = 0;
  /** The bucket that was pushed to last, and its key: slots come in long rows of one key. */
  #last: { key: BucketKey; bucket: Bucket } | null = null;

  /** Slots ready to start now. */
  get readyCount(): number {
    return this.#readyCount;
  }

  /** Slots waiting for their delay to end, and calls that were put aside. */
  get delayedCount(): number {
    return this.#delayed.length + this.#aside.size;
  }

  /** When the next delayed slot is due, or null. */
  get nextDueMs(): number | null {
    return this.#delayed.peek()?.notBeforeMs ?? null;
  }

  push(key: BucketKey, slotId: number): void {
    const bucket = this.#bucket(key);
    (bucket.ranked ?? bucket.slots).push(slotId);
    this.#readyCount += 1;
  }

  /** Queues a slot that may not start before `notBeforeMs`. */
  delay(key: BucketKey, slotId: number, notBeforeMs: number): void {
    this.#delayed.push({ notBeforeMs, key, slotId });
  }

  /** Moves the delayed slots that are due into their buckets, before the fresh ones. */
  wake(nowMs: number): void {
    while ((this.nextDueMs ?? Infinity) <= nowMs) {
      const due = this.#delayed.pop();
      if (due === undefined) return;
      this.#bucket(due.key).due.push(due.slotId);
      this.#readyCount += 1;
    }
  }

  /** The bucket whose head starts next, among those that are `eligible`; null if none is. */
  best(nowMs: number, eligible: (bucket: Bucket) => boolean): Bucket | null {
    let best: Bucket | null = null;
    for (const bucket of this.#buckets.values()) {
      if (eligible(bucket) && (best === null || comesBefore(bucket, best, nowMs))) best = bucket;
    }
    return best;
  }

  /** Removes and returns the head of a bucket. Call it only with a bucket that `best` returned in this turn. */
  take(bucket: Bucket): number | null {
    const slotId = headOf(bucket);
    if (slotId === undefined) return null;
    if (bucket.due.length > 0) bucket.due.shift();
    else if (bucket.ranked !== null) bucket.ranked.pop();
    else bucket.head += 1;
    this.#readyCount -= 1;
    if (countOf(bucket) === 0) this.#forget(bucket);
    // A long bucket drops its used half now and then, so that a group takes less memory as it is served.
    else if (bucket.head >= 1_024 && bucket.head * 2 >= bucket.slots.length) {
      bucket.slots.splice(0, bucket.head);
      bucket.head = 0;
    }
    return slotId;
  }

  /** Moves the head of a bucket to another line, behind what it has, but before the fresh ones if its delay is over. */
  moveHead(bucket: Bucket, upstream: string): void {
    const isDue = bucket.due.length > 0;
    const { groupSeq, priority, queuedAtMs, rankOf } = bucket;
    const slotId = this.take(bucket);
    if (slotId === null) return;
    const ranks = rankOf === undefined ? {} : { rankOf };
    const moved = this.#bucket({ ...ranks, groupSeq, priority, queuedAtMs, upstream });
    (isDue ? moved.due : (moved.ranked ?? moved.slots)).push(slotId);
    this.#readyCount += 1;
  }

  /** Puts the head of a bucket of single calls aside: it stays queued, and lets the next one start. */
  putAside(bucket: Bucket): void {
    const position = this.take(bucket);
    if (position !== null) this.addAside(bucket, position);
  }

  /** Queues a single call that may not start before `resume`. */
  addAside({ groupSeq, upstream, priority, queuedAtMs }: BucketKey, position: number): void {
    this.#aside.set(position, { groupSeq, upstream, priority, queuedAtMs });
  }

  /** The positions of the calls that were put aside. */
  get aside(): ReadonlyMap<number, Readonly<BucketKey>> {
    return this.#aside;
  }

  /** A call that was put aside may start, before the fresh ones of its bucket: it came before them. */
  resume(position: number, nowMs: number): void {
    const key = this.#aside.get(position);
    if (key === undefined) return;
    this.#aside.delete(position);
    this.delay(key, position, nowMs);
  }

  /** The buckets, with how many of their slots could start now. */
  *ready(): Generator<{ bucket: Bucket; count: number }> {
    for (const bucket of this.#buckets.values()) {
      yield { bucket, count: countOf(bucket) };
    }
  }

  /** The upstreams at which slots of a group wait, for a retry too. Costs a pass over the slots that wait for one. */
  upstreamsOf(groupSeq: number): Set<string> {
    const upstreams = new Set<string>();
    for (const bucket of this.#buckets.values()) if (bucket.groupSeq === groupSeq) upstreams.add(bucket.upstream);
    for (const { key } of this.#delayed.data) if (key.groupSeq === groupSeq) upstreams.add(key.upstream);
    return upstreams;
  }

  /** The queued slots of a group, by the line that they wait in. Costs a copy of them and a pass over those that wait for a retry. */
  queuedOf(groupSeq: number): QueuedSlots[] {
    const queued: QueuedSlots[] = [];
    for (const bucket of this.#buckets.values()) {
      if (bucket.groupSeq !== groupSeq) continue;
      const slotIds = [...bucket.due, ...(bucket.ranked?.data ?? bucket.slots.slice(bucket.head))];
      queued.push({ line: bucket.upstream, slotIds, notBeforeMs: null });
    }
    for (const { key, slotId, notBeforeMs } of this.#delayed.data) {
      if (key.groupSeq === groupSeq) queued.push({ line: key.upstream, slotIds: [slotId], notBeforeMs });
    }
    for (const [position, key] of this.#aside) {
      if (key.groupSeq === groupSeq) queued.push({ line: key.upstream, slotIds: [position], notBeforeMs: null });
    }
    return queued;
  }

  /**
   * How many slots and calls that could start now come before the first one of a group; null = the group has none that could.
   * Costs a pass over the buckets.
   */
  aheadOf(groupSeq: number, nowMs: number): number | null {
    const first = this.best(nowMs, (bucket) => bucket.groupSeq === groupSeq);
    if (first === null) return null;
    let ahead = 0;
    for (const { bucket, count } of this.ready()) if (comesBefore(bucket, first, nowMs)) ahead += count;
    return ahead;
  }

  /** The lines in which something waits, for a retry too. */
  lines(): Set<string> {
    const lines = new Set<string>();
    for (const { upstream } of this.#buckets.values()) lines.add(upstream);
    for (const { key } of this.#delayed.data) lines.add(key.upstream);
    for (const { upstream } of this.#aside.values()) lines.add(upstream);
    return lines;
  }

  /** Removes and returns every slot that `matches`, in no particular order. Costs a pass over the queue. */
  remove(matches: (groupSeq: number, slotId: number) => boolean): number[] {
    const removed: number[] = [];
    for (const bucket of [...this.#buckets.values()]) {
      const keep = (slotId: number): boolean => {
        const matched = matches(bucket.groupSeq, slotId);
        if (matched) removed.push(slotId);
        return !matched;
      };
      const before = removed.length;
      bucket.due = bucket.due.filter(keep);
      bucket.slots = bucket.slots.slice(bucket.head).filter(keep);
      bucket.head = 0;
      bucket.ranked = rankedOnes(bucket.rankOf, bucket.ranked?.data.filter(keep));
      this.#readyCount -= removed.length - before;
      if (countOf(bucket) === 0) this.#forget(bucket);
    }
    const stays = ({ key, slotId }: Delayed): boolean => {
      const matched = matches(key.groupSeq, slotId);
      if (matched) removed.push(slotId);
      return !matched;
    };
    this.#delayed = delayedOnes(this.#delayed.data.filter(stays));
    for (const [position, { groupSeq }] of this.#aside) {
      if (!matches(groupSeq, position)) continue;
      this.#aside.delete(position);
      removed.push(position);
    }
    return removed;
  }

  #bucket(key: BucketKey): Bucket {
    if (this.#last?.key === key) return this.#last.bucket;
    const name = nameOf(key);
    const bucket = this.#buckets.get(name) ?? { ...key, due: [], slots: [], head: 0, ranked: rankedOnes(key.rankOf) };
    this.#buckets.set(name, bucket);
    this.#last = { key, bucket };
    return bucket;
  }

  #forget(bucket: Bucket): void {
    this.#last = null;
    this.#buckets.delete(nameOf(bucket));
  }
}

/** The name of a bucket: slots with the same one wait for the same. */
export function nameOf({ groupSeq, priority, queuedAtMs, upstream }: BucketKey): string {
  return `${groupSeq} ${priority} ${queuedAtMs} ${upstream}`;
}

/** Priority with ageing, then the longer wait, then the older group; of one group, what has begun before what has not. */
function comesBefore(a: Bucket, b: Bucket, nowMs: number): boolean {
  const level = (bucket: Bucket): number => bucket.priority + Math.floor((nowMs - bucket.queuedAtMs) / AGEING_MS);
  const byLevel = level(b) - level(a);
  if (byLevel !== 0) return byLevel < 0;
  if (a.queuedAtMs !== b.queuedAtMs) return a.queuedAtMs < b.queuedAtMs;
  if (a.groupSeq !== b.groupSeq) return a.groupSeq < b.groupSeq;
  return a.due.length > 0 && b.due.length === 0;
}

function delayedOnes(entries: Delayed[] = []): TinyQueue<Delayed> {
  return new TinyQueue(entries, (a, b) => a.notBeforeMs - b.notBeforeMs);
}

/** Slots by rank, the largest first, then by id; null if the bucket has no ranks. */
function rankedOnes(rankOf: BucketKey["rankOf"], slotIds: number[] = []): TinyQueue<number> | null {
  return rankOf === undefined ? null : new TinyQueue(slotIds, (a, b) => rankOf(b) - rankOf(a) || a - b);
}
