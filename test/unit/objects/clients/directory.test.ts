import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ListedRun } from "../../../../src/objects/methods/directory-api.ts";
import {
  cursorOf,
  firstPlaceOf,
  ListOrder,
  mergeParts,
  parseCursor,
} from "../../../../src/objects/clients/directory.ts";

const run = (openedAt: number, id = `run_${openedAt}`): ListedRun => ({ openedAt, id });

/** What a part of the list replies, as its object does. */
const newest = (part: readonly ListedRun[], before: ListedRun | null, limit: number): ListedRun[] =>
  part
    .filter(({ openedAt, id }) => {
      if (before === null || openedAt < before.openedAt) return true;
      return openedAt === before.openedAt && id < before.id;
    })
    .toSorted((a, b) => b.openedAt - a.openedAt || (a.id < b.id ? 1 : -1))
    .slice(0, limit);

describe("a page of the list of runs", () => {
  it("has the newest of all parts", () => {
    const parts = [[run(9), run(4)], [run(8), run(7)], []];
    expect(mergeParts(parts, 3)).toEqual([run(9), run(8), run(7)]);
    expect(mergeParts(parts, 5)).toEqual([run(9), run(8), run(7), run(4)]);
    expect(mergeParts([[], []], 4)).toEqual([]);
  });

  it("followed by its cursors shows every run once, in order, whichever part has it and however many are as old", () => {
    const runs = fc.uniqueArray(fc.record({ at: fc.nat(5), id: fc.nat(99), part: fc.nat(3) }), {
      selector: ({ id }) => id,
    });
    const property = fc.property(runs, fc.integer({ min: 1, max: 5 }), (planned, limit) => {
      const parts: ListedRun[][] = [[], [], [], []];
      for (const { at, id, part } of planned) parts[part]?.push(run(at, `run_${String(id).padStart(2, "0")}`));
      const seen: string[] = [];
      for (let before: ListedRun | null = null, pages = 0; pages <= planned.length; pages++) {
        const from: ListedRun | null = before;
        const page = mergeParts(
          parts.map((part) => newest(part, from, limit)),
          limit,
        );
        seen.push(...page.map(({ id }) => id));
        const last = page.at(-1);
        if (last === undefined || page.length < limit) break;
        before = parseCursor(cursorOf(last));
        expect(before).toEqual(last);
      }
      expect(seen).toEqual(newest(parts.flat(), null, Infinity).map(({ id }) => id));
    });
    fc.assert(property, { numRuns: 300 });
  });
});

describe("a cursor", () => {
  it.each(["", "run_x", "12", "12.", ".run_x", "x.run_x", "12.x", "12.run_", "99999999999999999.run_x", "12.run_x\n"])(
    "is not %j",
    (text) => {
      expect(parseCursor(text)).toBeNull();
    },
  );

  it("names a run by its time and its id", () => {
    expect(parseCursor("1763712000000123.run_ab")).toEqual({ openedAt: 1_763_712_000_000_123, id: "run_ab" });
  });
});

describe("the order of runs", () => {
  it("is that of their opening, within a millisecond and where the clock goes back a little", () => {
    const order = new ListOrder();
    const times = [1_000, 1_000, 1_000, 1_001, 960, 1_002].map((ms) => order.next(ms));
    expect(times).toEqual([1_000_000, 1_000_001, 1_000_002, 1_001_000, 1_001_001, 1_002_000]);
  });

  it("begins anew where the clock is set back, so that each run is near its opening", () => {
    const order = new ListOrder();
    const places = [3_600_000, 1_000, 1_000].map((ms) => order.next(ms) - firstPlaceOf({ createdAtMs: ms }));
    expect(places).toEqual([0, 0, 1]);
  });
});
