import { describe, expect, it } from "vitest";
import { BoundedMap } from "../../../src/renewed/bounded-map.ts";
import { REMOVED_MAX } from "../../../src/renewed/map.ts";

describe("a map of the newest entries", () => {
  it("keeps as many as it may, and drops the oldest for one more", () => {
    const map = new BoundedMap<string, number>(3).set("a", 1).set("b", 2).set("c", 3);
    expect([...map.keys()]).toEqual(["a", "b", "c"]);
    map.set("d", 4);
    expect([...map]).toEqual([
      ["b", 2],
      ["c", 3],
      ["d", 4],
    ]);
  });

  it("makes an entry that is set again the newest one, and drops none for it", () => {
    const map = new BoundedMap<string, number>(3).set("a", 1).set("b", 2).set("c", 3).set("a", 4);
    expect([...map]).toEqual([
      ["b", 2],
      ["c", 3],
      ["a", 4],
    ]);
    expect([...map.set("d", 5).keys()]).toEqual(["c", "a", "d"]);
  });

  it("has room again for each entry that is deleted", () => {
    const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2);
    expect(map.delete("b")).toBe(true);
    expect([...map.set("c", 3).keys()]).toEqual(["a", "c"]);
  });

  it("keeps the newest of very many", () => {
    const map = new BoundedMap<number, number>(2);
    for (let key = 0; key < 3 * REMOVED_MAX; key++) map.set(key, key);
    expect([...map.keys()]).toEqual([3 * REMOVED_MAX - 2, 3 * REMOVED_MAX - 1]);
  });
});
