/** What the retry of a batch begins with, read before the turn that opens it. */
import { describe, expect, it } from "vitest";
import { readingBatch } from "../../../../../durable-objects/run/groups/retry-group.ts";
import { CallPageBuilder, type CallPage } from "../../../../../src/run/queue/call-page.ts";

const FACTS = { promptBytes: 1, messageCount: 1, mediaParts: 0, model: null, maxTokens: 9, timeoutMs: null } as const;

/** A store of a group that has retried another: what completed in each, and which ranges were asked for. */
function storeOf(count: number, completed: Readonly<Record<number, readonly number[]>>) {
  const builder = new CallPageBuilder({});
  const pages: CallPage[] = [];
  for (let at = 0; at < count; at += 1) {
    const page = builder.add({ body: { prompt: "a" }, facts: { ...FACTS, priority: 2 } });
    if (page !== null) pages.push(page);
  }
  const last = builder.flush();
  const ranges: (readonly [seq: number, from: number, to: number])[] = [];
  const store = {
    groups: {
      *pageFacts() {
        yield* pages;
        if (last !== null) yield last;
      },
      beforeRetryOf: () => Object.keys(completed).map((seq) => ({ seq: Number(seq), firstCall: null })),
    },
    slots: {
      kept: (seq: number, from: number, to: number): number[] => {
        ranges.push([seq, from, to]);
        return (completed[seq] ?? []).filter((index) => index >= from && index < to);
      },
    },
  };
  return { store, ranges };
}

const GROUP = { seq: 2, models: [null] };

/** What is read between each two pauses, of all that is asked of the store. */
function steps(count: number, completed: Readonly<Record<number, readonly number[]>>) {
  const { store, ranges } = storeOf(count, completed);
  const reading = readingBatch(store, { ...GROUP, count });
  const asked: number[] = [];
  for (;;) {
    const before = ranges.length;
    const step = reading.next();
    asked.push(ranges.length - before);
    if (step.done === true) return { read: step.value, ranges, asked };
  }
}

describe("a batch that is retried", () => {
  it("is read with the places of what has completed, in order, whichever group that was in", () => {
    const { read, ranges, asked } = steps(70, { 1: [3, 40], 2: [0, 39, 69] });
    expect(read.kept).toEqual([0, 3, 39, 40, 69]);
    expect(read.pages.map(({ firstIndex, slots }) => [firstIndex, slots.length])).toEqual([
      [0, 32],
      [32, 32],
      [64, 6],
    ]);
    expect(ranges).toEqual([
      [1, 0, 70],
      [2, 0, 70],
    ]);
    // A small one has no pause.
    expect(asked).toEqual([2]);
  });

  it("is looked up a few thousand slots at a time if it is large, and completely", () => {
    const count = 20_000;
    const completed = Array.from({ length: count / 2 }, (_, at) => 2 * at);
    const { read, ranges, asked } = steps(count, { 1: completed, 2: [1, count - 1] });
    expect(read.kept).toEqual([...completed, 1, count - 1].toSorted((a, b) => a - b));
    expect(read.pages.reduce((sum, { slots }) => sum + slots.length, 0)).toBe(count);
    // At most one look between two pauses, and none of more than 4,096 slots.
    expect(Math.max(...asked)).toBe(1);
    expect(Math.max(...ranges.map(([, from, to]) => to - from))).toBe(4_096);
    for (const seq of [1, 2]) {
      const own = ranges.filter(([of]) => of === seq);
      expect(own.map(([, from]) => from)).toEqual([0, ...own.slice(0, -1).map(([, , to]) => to)]);
      expect(own.at(-1)?.[2]).toBe(count);
    }
  });
});
