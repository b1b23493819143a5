/** Which runs the start page shows, in which order, and the address that keeps both. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addressOf,
  COLUMNS,
  isWanted,
  listQuery,
  noFilters,
  sorted,
  viewIn,
  type Filters,
} from "../../../../ui/model/runs/filters.ts";
import { activityOf, newer, readListed, type ListedRun } from "../../../../ui/model/runs/listed.ts";

const RUN: ListedRun = {
  ...{ id: "run_1", name: "Nightly eval", status: "active", createdMs: 1_000, lastCallMs: null, calls: 3, inFlight: 0 },
  ...{ queued: 0, failed: 0, failures: {}, spentUsd: 0.5, ownUsd: 0.5, limitUsd: 1, children: 0, openChildren: 0 },
  ...{ knownMs: 5, problem: null },
};
const filters = (some: Partial<Filters>): Filters => ({ ...noFilters(), ...some });

describe("the address of the start page", () => {
  it("keeps every filter and every order", () => {
    const text = fc.string({ maxLength: 20 });
    const all = fc.record({
      text,
      state: text,
      openedAfter: text,
      openedBefore: text,
      spentMin: text,
      spentMax: text,
    });
    const order = fc.record({ column: fc.constantFrom(...COLUMNS), isDescending: fc.boolean() });
    fc.assert(
      fc.property(all, order, (kept, sorting) => {
        expect(viewIn(addressOf(kept, sorting))).toEqual({ filters: kept, sorting });
      }),
    );
  });

  it("is plain without filters, and one with an unknown order shows the newest first", () => {
    const { filters: none, sorting } = viewIn("?sort=-nothing&other=1");
    expect([none, sorting, addressOf(none, sorting)]).toEqual([
      noFilters(),
      { column: "opened", isDescending: true },
      "",
    ]);
  });
});

describe("the filters", () => {
  it.each<[string, Partial<Filters>, Partial<ListedRun>, boolean]>([
    ["a part of the name in any case", { text: "EVAL" }, {}, true],
    ["another name", { text: "other" }, {}, false],
    ["a part of the id", { text: "run_1" }, { name: null }, true],
    ["the code of an error", { text: "rate_limited" }, { failures: { upstream_rate_limited: 3 } }, true],
    ["its words", { text: "Rate limited" }, { failures: { upstream_rate_limited: 3 } }, true],
    ["another error", { text: "timeout" }, { failures: { upstream_rate_limited: 3 } }, false],
    ["working runs", { state: "working" }, { queued: 1 }, true],
    ["working runs, not idle ones", { state: "working" }, {}, false],
    ["idle runs", { state: "idle" }, {}, true],
    ["idle runs, not ended ones", { state: "idle" }, { status: "closed" }, false],
    ["runs with failures", { state: "failed" }, { failed: 2 }, true],
    ["a status", { state: "closed" }, { status: "closed" }, true],
    ["at least so much spent", { spentMin: "0.5" }, {}, true],
    ["more than was spent", { spentMin: "0.51" }, {}, false],
    ["at most so much spent", { spentMax: "0.49" }, {}, false],
  ])("want %s", (_, some, run, wanted) => {
    expect(isWanted({ ...RUN, ...run }, filters(some))).toBe(wanted);
  });

  it("send the gateway what it can apply itself", () => {
    expect(listQuery(filters({ text: "a b", state: "working", spentMin: "1" }))).toBe("name=a+b&spent_usd_min=1");
    expect(listQuery(filters({ state: "closed", openedAfter: "2026-01-01T00:00Z" }))).toBe(
      "status=closed&opened_after=2026-01-01T00%3A00%3A00.000Z",
    );
    expect(listQuery(noFilters())).toBe("");
  });
});

describe("the order", () => {
  it("is that of the column, with equal runs newest first, and its reverse", () => {
    const runs = [
      { ...RUN, id: "a", spentUsd: 2, createdMs: 1 },
      { ...RUN, id: "b", spentUsd: 1, createdMs: 2 },
      { ...RUN, id: "c", spentUsd: 1, createdMs: 3 },
    ];
    const ids = (isDescending: boolean) => sorted(runs, { column: "spent", isDescending }).map(({ id }) => id);
    expect([ids(false), ids(true)]).toEqual([
      ["c", "b", "a"],
      ["a", "c", "b"],
    ]);
  });

  it("has working runs before idle ones before ended ones, and runs without a name last", () => {
    const runs = [
      { ...RUN, id: "ended", status: "closed", name: null },
      { ...RUN, id: "idle", name: "b" },
      { ...RUN, id: "working", inFlight: 1, name: "a" },
    ];
    const ids = (column: "state" | "name") => sorted(runs, { column, isDescending: false }).map(({ id }) => id);
    expect([ids("state"), ids("name")]).toEqual([
      ["working", "idle", "ended"],
      ["working", "idle", "ended"],
    ]);
  });
});

describe("an entry of the list", () => {
  it("has what is in flight apart from what is queued, and all failures", () => {
    const json = {
      id: "run_2",
      status: "active",
      in_flight: 3,
      stats: { total_queries: 10, pending_queries: 5 },
      metrics: { failures: { upstream_error: 2, budget_exhausted: 1 } },
      updated_at: "2026-11-21T13:00:00.000Z",
    };
    const run = readListed(json, 0);
    expect(run).toMatchObject({ inFlight: 3, queued: 2, failed: 3, knownMs: Date.UTC(2026, 10, 21, 13) });
    expect(run === null ? null : activityOf(run)).toBe("working");
  });

  it("is the newer of a summary and a document", () => {
    expect(newer({ ...RUN, knownMs: 9 }, RUN).knownMs).toBe(9);
    expect(newer({ ...RUN, knownMs: 4 }, RUN).knownMs).toBe(5);
  });
});
