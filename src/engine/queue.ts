/**
 * What is ready to run, in order: priority with ageing first, then who has waited longest, then place. Slots that are
 * alike (same group, priority, upstream, executor) stand in one line, so picking compares the heads of a few lines and
 * a waiting slot costs eight bytes. Slots that must wait (a retry's delay) stand in a heap by time and join when due.
 */
import type { Priority } from "../call.ts";

/** A waiting slot gains one priority level per this many ms, so nothing starves. */
export const AGEING_MS = 30_000;

/** What the slots of one line have in common. `groupSeq` 0 holds single calls, whose executor is their own client. */
export type LineKey = { groupSeq: number; upstream: string; priority: Priority; queuedAtMs: number };

export type Line = LineKey & { slots: number[]; head: number };

type Delayed = { notBeforeMs: number; key: LineKey; slotId: number };

export class ReadyQueue {
  #lines = new Map<string, Line>();
  #delayed: Delayed[] = [];
  #readyCount = 0;

  /** Slots ready to start now. */
  get readyCount(): number {
    return this.#readyCount;
  }

  /** Slots waiting for a time. */
  get delayedCount(): number {
    return this.#delayed.length;
  }

  /** When the next delayed slot is due, or null. */
  get nextDueMs(): number | null {
    return this.#delayed[0]?.notBeforeMs ?? null;
  }

  push(key: LineKey, slotId: number): void {
    const name = `${key.groupSeq} ${key.priority} ${key.queuedAtMs} ${key.upstream}`;
    const line = this.#lines.get(name);
    if (line === undefined) this.#lines.set(name, { ...key, slots: [slotId], head: 0 });
    else line.slots.push(slotId);
    this.#readyCount += 1;
  }

  /** Puts a slot aside until `notBeforeMs`. */
  delay(key: LineKey, slotId: number, notBeforeMs: number): void {
    const heap = this.#delayed;
    heap.push({ notBeforeMs, key, slotId });
    for (let at = heap.length - 1; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!swapIfEarlier(heap, at, parent)) break;
      at = parent;
    }
  }

  /** Moves the delayed slots that are due into their lines. */
  wake(nowMs: number): void {
    while (this.#delayed[0] !== undefined && this.#delayed[0].notBeforeMs <= nowMs) {
      const due = popEarliest(this.#delayed);
      if (due !== null) this.push(due.key, due.slotId);
    }
  }

  /** The line whose head should start next among those `eligible` lets through, or null. */
  best(nowMs: number, eligible: (line: Line) => boolean): Line | null {
    let best: Line | null = null;
    for (const line of this.#lines.values()) {
      if (eligible(line) && (best === null || comesBefore(line, best, nowMs))) best = line;
    }
    return best;
  }

  /** Takes the head of a line. Call it only with a line that `best` returned in this turn. */
  take(line: Line): number | null {
    const slotId = line.slots[line.head];
    if (slotId === undefined) return null;
    line.head += 1;
    this.#readyCount -= 1;
    if (line.head === line.slots.length) this.#forget(line);
    // Long lines give their spent half back now and then, so that a group's memory falls as it is served.
    else if (line.head >= 1_024 && line.head * 2 >= line.slots.length) {
      line.slots.splice(0, line.head);
      line.head = 0;
    }
    return slotId;
  }

  /** Takes out every slot that `matches`; returns them in no particular order. Costs a pass over the queue. */
  remove(matches: (groupSeq: number, slotId: number) => boolean): number[] {
    const removed: number[] = [];
    for (const line of [...this.#lines.values()]) {
      const kept: number[] = [];
      for (const slotId of line.slots.slice(line.head)) (matches(line.groupSeq, slotId) ? removed : kept).push(slotId);
      this.#readyCount -= line.slots.length - line.head - kept.length;
      line.slots = kept;
      line.head = 0;
      if (kept.length === 0) this.#forget(line);
    }
    const delayed = this.#delayed;
    this.#delayed = [];
    for (const entry of delayed) {
      if (matches(entry.key.groupSeq, entry.slotId)) removed.push(entry.slotId);
      else this.delay(entry.key, entry.slotId, entry.notBeforeMs);
    }
    return removed;
  }

  #forget(line: Line): void {
    this.#lines.delete(`${line.groupSeq} ${line.priority} ${line.queuedAtMs} ${line.upstream}`);
  }
}

/** Priority with ageing, then the longer wait, then the older group. */
function comesBefore(a: Line, b: Line, nowMs: number): boolean {
  const level = (line: Line): number => line.priority + Math.floor((nowMs - line.queuedAtMs) / AGEING_MS);
  const byLevel = level(b) - level(a);
  if (byLevel !== 0) return byLevel < 0;
  if (a.queuedAtMs !== b.queuedAtMs) return a.queuedAtMs < b.queuedAtMs;
  return a.groupSeq < b.groupSeq;
}

function swapIfEarlier(heap: Delayed[], child: number, parent: number): boolean {
  const lower = heap[child];
  const upper = heap[parent];
  if (lower === undefined || upper === undefined || lower.notBeforeMs >= upper.notBeforeMs) return false;
  heap[child] = upper;
  heap[parent] = lower;
  return true;
}

function popEarliest(heap: Delayed[]): Delayed | null {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined) return null;
  if (heap.length === 0) return first;
  heap[0] = last;
  for (let at = 0; ;) {
    const left = 2 * at + 1;
    const right = left + 1;
    const earlier = (heap[right]?.notBeforeMs ?? Infinity) < (heap[left]?.notBeforeMs ?? Infinity) ? right : left;
    if (!swapIfEarlier(heap, earlier, at)) return first;
    at = earlier;
  }
}
