/** Shards in the rows of stored calls: which turn may leave one there, and what a restart reads of all that were written. */
import { describe, expect, it } from "vitest";
import { CarriedShards, newestShards } from "../../../../../durable-objects/run/store/carried-shards.ts";
import type { ShardRecord } from "../../../../../durable-objects/run/store/records.ts";
import { CARRIED_LEASES_MAX, CARRIED_SHARDS_MAX, OPENINGS_RECALLED_MS } from "../../../../../src/limits.ts";
import type { StoredSettled } from "../../../../../src/run/leases/shard.ts";
import { zeroTotals } from "../../../../../src/run/measures/totals.ts";

const shard = (id: number, size = 0) => ({ id, leases: { size } });
const call = (seq: number, done = true) => ({ done, header: { seq, single: "later" as const } });
const WRITTEN_MS = 100_000;
const NOW_MS = WRITTEN_MS + OPENINGS_RECALLED_MS - 1;
const batch = (seq: number) => ({ done: true, header: { seq, single: null } });

describe("the end of a stored call", () => {
  const carriedShards = (...ids: number[]): CarriedShards => new CarriedShards(ids, WRITTEN_MS);

  it("carries the one shard that its turn writes", () => {
    expect(carriedShards().carrierOf({ shards: [shard(7)], groups: [call(3)] }, NOW_MS)).toBe(3);
  });

  it.each([
    ["with another shard", { shards: [shard(7), shard(8)], groups: [call(3)] }],
    ["with another end", { shards: [shard(7)], groups: [call(3), call(4)] }],
    ["before the end", { shards: [shard(7)], groups: [call(3, false)] }],
    ["of a batch", { shards: [shard(7)], groups: [batch(3)] }],
    ["without a shard", { shards: [], groups: [call(3)] }],
    ["with many attempts in flight", { shards: [shard(7, CARRIED_LEASES_MAX + 1)], groups: [call(3)] }],
  ])("carries none %s", (_, written) => {
    expect(carriedShards().carrierOf(written, NOW_MS)).toBeNull();
  });

  it("carries none as long as no row says which calls need not be read", () => {
    const carried = new CarriedShards([], null);
    const written = { shards: [shard(7)], groups: [call(3)] };
    expect(carried.carrierOf(written, NOW_MS)).toBeNull();
    carried.takeOthers(written.shards, NOW_MS);
    expect(carried.carrierOf(written, NOW_MS)).toBe(3);
  });

  it("carries none once the record of settled calls is so old that a newer one covers more", () => {
    const carried = carriedShards(7);
    const written = { shards: [shard(7)], groups: [call(3)] };
    const laterMs = WRITTEN_MS + OPENINGS_RECALLED_MS;
    expect(carried.carrierOf(written, laterMs)).toBeNull();
    carried.takeOthers(written.shards, laterMs);
    expect(carried.carrierOf(written, laterMs)).toBe(3);
  });

  it("carries none after as many as a waking object may read, those before it woke among them, until rows are written", () => {
    const carried = carriedShards(7, 7);
    const written = { shards: [shard(7)], groups: [call(3)] };
    for (let more = 2; more < CARRIED_SHARDS_MAX; more += 1) {
      expect(carried.carrierOf(written, NOW_MS)).toBe(3);
      carried.carried(7);
    }
    expect(carried.carrierOf(written, NOW_MS)).toBeNull();
    carried.takeOthers(written.shards, NOW_MS);
    expect(carried.carrierOf(written, NOW_MS)).toBe(3);
  });
});

describe("a turn that writes rows of shards", () => {
  it("writes those that are carried, too, once", () => {
    const carried = new CarriedShards([7, 9, 7], WRITTEN_MS);
    expect(carried.takeOthers([], NOW_MS)).toEqual([]);
    expect(carried.takeOthers([shard(7)], NOW_MS)).toEqual([9]);
    expect(carried.takeOthers([shard(7)], NOW_MS)).toEqual([]);
  });
});

describe("a restart", () => {
  const SETTLED: StoredSettled = {
    before: 3,
    next: 5,
    open: [],
    counts: { slots: 2, parallelGroups: 0, parallelSlots: 0 },
  };
  const recordOf = (id: number, upTo: number, events: number[] = [], settled?: StoredSettled): ShardRecord => ({
    id,
    shard: {
      totals: { ...zeroTotals(), lastCallMs: upTo },
      leases: [],
      upTo,
      ...(settled === undefined ? {} : { settled }),
    },
    tail: events.map((seq) => [seq, { atMs: seq, group: null, event: "run_closed", status: "closed" }]),
  });
  const shown = ({ shards, carried, recordMs }: ReturnType<typeof newestShards>) => ({
    shards: shards.map(({ id, shard: { upTo, settled }, tail }) => [id, upTo, settled, tail.map(([seq]) => seq)]),
    carried,
    recordMs,
  });

  it("takes each shard as it was written last, with the events of all tails and the record of its row", () => {
    const rows = [recordOf(1, 4, [2, 3, 4], SETTLED), recordOf(2, 6)];
    const copies = [recordOf(1, 9, [8, 9]), recordOf(1, 7, [5, 6, 7]), recordOf(3, 11, [10, 11])];
    expect(shown(newestShards(rows, copies))).toEqual({
      shards: [
        [1, 9, SETTLED, [2, 3, 4, 5, 6, 7, 8, 9]],
        [2, 6, undefined, []],
        [3, 11, undefined, [10, 11]],
      ],
      carried: [1, 1, 3],
      recordMs: 4,
    });
  });

  it("leaves out what a row is newer than, or as new as: it was written after", () => {
    const rows = [recordOf(1, 9, [9])];
    expect(shown(newestShards(rows, [recordOf(1, 9, [9]), recordOf(1, 3, [3])]))).toEqual({
      shards: [[1, 9, undefined, [9]]],
      carried: [],
      recordMs: null,
    });
  });
});
