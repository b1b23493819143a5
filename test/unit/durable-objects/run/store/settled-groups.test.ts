/** The record of settled groups: what it leaves out needs no reading, and with what is read it counts every group once. */
import { describe, expect, it } from "vitest";
import { newestOf, SettledGroups } from "../../../../../durable-objects/run/store/settled-groups.ts";
import type { StoredSettled } from "../../../../../src/run/leases/shard.ts";
import { OPENINGS_KEPT, OPENINGS_RECALLED_MS, SETTLED_OPEN_MAX } from "../../../../../src/limits.ts";

const LATER_MS = OPENINGS_RECALLED_MS;
const none = (): boolean => false;
const header = (seq: number, count = 2, openedAtMs = 0) => ({ seq, count, single: null, openedAtMs });

function opened(groups: number): SettledGroups {
  const settled = new SettledGroups(null);
  for (let seq = 1; seq <= groups; seq += 1) settled.note(header(seq));
  return settled;
}

describe("a record of settled groups", () => {
  it("sums up the groups that have ended", () => {
    const counts = { slots: 6, parallelGroups: 3, parallelSlots: 6 };
    expect(opened(3).stored(4, none, LATER_MS)).toEqual({ before: 4, next: 4, open: [], counts });
  });

  it("leaves out what may be asked for again because a reply was lost: the newest openings of the last minute", () => {
    const settled = opened(OPENINGS_KEPT + 5);
    const next = OPENINGS_KEPT + 6;
    expect(settled.stored(next, none, LATER_MS - 1)).toMatchObject({ before: 6, counts: { slots: 10 } });
    expect(settled.stored(next, none, LATER_MS)).toMatchObject({ before: next, counts: { slots: 2 * (next - 1) } });
  });

  it("names groups that are open, and counts each when it has ended", () => {
    const settled = opened(10);
    const first = settled.stored(11, (seq) => seq === 3 || seq === 5, LATER_MS);
    expect(first).toMatchObject({ before: 11, open: [3, 5], counts: { parallelGroups: 8 } });
    const second = settled.stored(11, (seq) => seq === 5, LATER_MS);
    expect(second).toMatchObject({ before: 11, open: [5], counts: { parallelGroups: 9 } });
  });

  it("names so many open groups, and of more has all that are newer read", () => {
    const settled = opened(2 * SETTLED_OPEN_MAX);
    const { before, open } = settled.stored(2 * SETTLED_OPEN_MAX + 1, () => true, LATER_MS);
    expect([before, open.length]).toEqual([SETTLED_OPEN_MAX + 1, SETTLED_OPEN_MAX]);
  });

  it("has the call of a judge read for as long as the group that it serves is open", () => {
    const settled = opened(1);
    settled.note({ ...header(2, 1), serves: { seq: 1, as: "judge", answers: 0 } });
    expect(settled.stored(3, (seq) => seq === 1, LATER_MS)).toMatchObject({ before: 2, open: [1] });
    expect(settled.stored(3, none, LATER_MS)).toMatchObject({ before: 3, open: [] });
  });

  it("does not count a number that no group has", () => {
    const settled = opened(1);
    settled.note(header(3));
    expect(settled.stored(4, none, LATER_MS)).toMatchObject({ before: 4, counts: { parallelGroups: 2 } });
  });

  it("is the one of several that covers most", () => {
    const record = (before: number): StoredSettled => ({
      before,
      next: before,
      open: [],
      counts: { slots: 0, parallelGroups: 0, parallelSlots: 0 },
    });
    expect(newestOf([record(3), undefined, record(7), record(5)])?.before).toBe(7);
    expect(newestOf([undefined])).toBeNull();
  });
});

describe("in any history with restarts, each from any record so far", () => {
  it.each(Array.from({ length: 10 }, (_, seed) => seed))("each group is counted once (seed %i)", (seed) => {
    const random = draws(seed);
    const counts = new Map<number, number>();
    const open = new Set<number>();
    const openedAtMs = new Map<number, number>();
    const records: (StoredSettled | null)[] = [null];
    let settled = new SettledGroups(null);
    let nowMs = 0;
    for (let next = 1; next < 400;) {
      nowMs += Math.floor(random() * 2_000);
      if (random() < 0.6) {
        const count = 1 + Math.floor(random() * 3);
        counts.set(next, count);
        openedAtMs.set(next, nowMs);
        open.add(next);
        settled.note(header(next, count, nowMs));
        next += 1;
      }
      for (const seq of open) if (random() < 0.2) open.delete(seq);
      if (random() < 0.5) records.push(settled.stored(next, (seq) => open.has(seq), nowMs));
      if (random() > 0.05) continue;
      const record = records[Math.floor(random() * records.length)] ?? null;
      settled = new SettledGroups(record);
      let sum = record?.counts.slots ?? 0;
      let missed = 0;
      for (const [seq, count] of counts) {
        const isRead = record === null || seq >= record.before || record.open.includes(seq);
        // What is open now was open, or not there, when the record was made.
        if (!isRead && open.has(seq)) missed += 1;
        if (!isRead) continue;
        settled.note(header(seq, count, openedAtMs.get(seq)));
        sum += count;
      }
      expect(missed).toBe(0);
      expect(sum).toBe([...counts.values()].reduce((all, count) => all + count, 0));
    }
  });
});

/** A small generator: the same numbers for the same seed. */
function draws(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
