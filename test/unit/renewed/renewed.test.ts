import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { REMOVED_MAX, RenewedMap } from "../../../src/renewed/map.ts";
import { RenewedSet } from "../../../src/renewed/set.ts";

describe("a map of entries that come and go", () => {
  it("behaves as a Map, however many entries were removed", () => {
    const [map, plain] = [new RenewedMap<number, string>(), new Map<number, string>()];
    for (let key = 0; key < 4 * REMOVED_MAX; key++) {
      for (const each of [map, plain]) each.set(key, `v${key}`).set(key % 7, "low");
      expect(map.delete(key - 40)).toBe(plain.delete(key - 40));
      expect(map.get(key % 7)).toBe("low");
      expect(map.has(key - 40)).toBe(plain.has(key - 40));
      expect(map.size).toBe(plain.size);
    }
    expect([...map]).toEqual([...plain]);
    expect([...map.keys()]).toEqual([...plain.keys()]);
    expect([...map.values()]).toEqual([...plain.values()]);
    expect([...map.entries()]).toEqual([...plain.entries()]);
    const seen: [number, string][] = [];
    map.forEach((value, key) => seen.push([key, value]));
    expect(seen).toEqual([...plain]);
    map.clear();
    expect([...map]).toEqual([]);
  });

  it("begins with the entries that it is given", () => {
    expect([
      ...new RenewedMap([
        ["a", 1],
        ["b", 2],
      ]),
    ]).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
  });

  it("skips entries that a loop over it removes", () => {
    const map = new RenewedMap(Array.from({ length: 100 }, (_, key) => [key, key] as const));
    const seen: number[] = [];
    for (const [key] of map) {
      seen.push(key);
      map.delete(key);
      map.delete(key + 1);
    }
    expect(seen).toEqual(Array.from({ length: 50 }, (_, index) => 2 * index));
  });
});

describe("a set of members that come and go", () => {
  it("behaves as a Set", () => {
    const [set, plain] = [new RenewedSet<number>(), new Set<number>()];
    for (let member = 0; member < 4 * REMOVED_MAX; member++) {
      for (const each of [set, plain]) each.add(member).add(3);
      expect(set.delete(member - 40)).toBe(plain.delete(member - 40));
      expect(set.has(member)).toBe(true);
      expect(set.size).toBe(plain.size);
    }
    expect([...set]).toEqual([...plain]);
    set.clear();
    expect(set.size).toBe(0);
  });
});

/** A collection through which entries pass, a few at a time. */
type Passing = { add: (key: number, value: object) => void; remove: (key: number, value: object) => void };

/** Few enough that V8 makes no full collection by itself. */
const PASSING = 10 * REMOVED_MAX;
const PRESENT = 48;
const VALUE_BYTES = 400;

/** V8's collection of young objects, or of all objects. */
function collector(): (options?: { type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

/** Bytes that entries leave behind which have come and gone, as V8's collections of young objects see it. */
function bytesLeftBy({ add, remove }: Passing): number {
  const collect = collector();
  const early = Array.from({ length: PRESENT }, (_, index) => ({ key: -1 - index, value: {} }));
  for (const { key, value } of early) add(key, value);
  // What survives this is in the old generation, as after a pause between two batches.
  collect();
  for (const { key, value } of early) remove(key, value);
  const beforeBytes = getHeapStatistics().used_heap_size;
  const present: { key: number; value: object }[] = [];
  for (let key = 0; key < PASSING; key++) {
    const value = { fill: Array.from({ length: VALUE_BYTES / 8 }, () => key) };
    add(key, value);
    present.push({ key, value });
    const first = present.length > PRESENT ? present.shift() : undefined;
    if (first !== undefined) remove(first.key, first.value);
  }
  for (let times = 0; times < 3; times++) collect({ type: "minor" });
  return getHeapStatistics().used_heap_size - beforeBytes;
}

describe("the memory of what has come and gone", () => {
  const allBytes = PASSING * VALUE_BYTES;

  it("is free after V8's next collection of young objects", () => {
    const map = new RenewedMap<number, object>();
    const ofMap = bytesLeftBy({ add: (key, value) => map.set(key, value), remove: (key) => map.delete(key) });
    expect(ofMap).toBeLessThan(allBytes / 4);
    const set = new RenewedSet<object>();
    const ofSet = bytesLeftBy({ add: (_, value) => set.add(value), remove: (_, value) => set.delete(value) });
    expect(ofSet).toBeLessThan(allBytes / 4);
  });

  it("is not free if it has gone through a Map, which is why there is a RenewedMap", () => {
    const map = new Map<number, object>();
    const left = bytesLeftBy({ add: (key, value) => map.set(key, value), remove: (key) => map.delete(key) });
    expect(left).toBeGreaterThan(allBytes / 2);
  });
});
