import { describe, expect, it } from "vitest";
import {
  addressOfWanted,
  ALL_CALLS,
  foundWithoutRow,
  isSameRow,
  rowsOf,
  SHOWN,
  wantedIn,
  type Row,
  type Rows,
} from "../../../ui/model/rows.ts";
import { callKey } from "../../../ui/model/call-search.ts";
import { GROUP, Lines, stateOf } from "./lines.ts";

const OTHER = "pg-1763712000001-zzzzzz";

const nameOf = (row: Row | null): string | null => {
  if (row === null) return null;
  return row.kind === "group" ? row.group.id : (row.call.callId ?? `call ${row.call.index}`);
};
const listed = (rows: Rows) => Array.from({ length: rows.length }, (_, index) => nameOf(rows.at(index)));

function threeKinds(): Lines {
  const lines = new Lines().add(0, "group_started", { count: 2 }).started(1, 0).started(1, 1);
  lines.ended(2, 1, { outcome: "rejected" }).completed(2, 1, "failed", "no");
  lines.add(3, "attempt_started", { index: null, call_id: "single", attempt: 1 }, null);
  lines.add(4, "group_started", { count: 1 }, OTHER);
  const replayed = { index: 0, call_id: null, status: "completed", replayed: true, usage: { cost: 0 } };
  return lines.add(5, "slot_completed", replayed, OTHER);
}

describe("the timeline's rows", () => {
  it("are each group with its calls, then single calls", () => {
    expect(listed(rowsOf(stateOf(threeKinds()), { ...ALL_CALLS, shown: "all" }))).toEqual([
      GROUP,
      "call 0",
      "call 1",
      OTHER,
      "call 0",
      "single",
    ]);
  });

  it.each([
    ["failed", [GROUP, "call 1"]],
    ["running", [GROUP, "call 0", "single"]],
    ["retried", []],
    ["replayed", [OTHER, "call 0"]],
  ] as const)("can be those of %s calls, without the groups that have none", (which, names) => {
    expect(listed(rowsOf(stateOf(threeKinds()), { ...ALL_CALLS, shown: which }))).toEqual(names);
  });

  it("have nothing before the first and after the last", () => {
    const rows = rowsOf(stateOf(threeKinds()), { ...ALL_CALLS, shown: "all" });
    expect([rows.at(-1), rows.at(rows.length)]).toEqual([null, null]);
  });

  it("are found again where they are, and not in a list without them", () => {
    const state = stateOf(threeKinds());
    const all = rowsOf(state, { ...ALL_CALLS, shown: "all" });
    for (let index = 0; index < all.length; index++) {
      const row = all.at(index);
      if (row === null) throw new Error(`no row ${index}`);
      expect(all.indexOf(row)).toBe(index);
      expect(isSameRow(row, all.at(index))).toBe(true);
    }
    const single = all.at(5);
    expect(single === null ? null : rowsOf(state, { ...ALL_CALLS, shown: "failed" }).indexOf(single)).toBeNull();
  });

  it("stay as many as they were when the list was made, while calls go on to begin", () => {
    const lines = threeKinds();
    const state = stateOf(lines);
    const before = rowsOf(state, { ...ALL_CALLS, shown: "all" });
    const more = lines.started(9, 7).all.at(-1);
    if (more !== undefined) state.apply(more);
    expect(listed(before)).toEqual([GROUP, "call 0", "call 1", OTHER, "call 0", "single"]);
    expect(listed(rowsOf(state, { ...ALL_CALLS, shown: "all" }))).toEqual([
      GROUP,
      "call 0",
      "call 1",
      "call 7",
      OTHER,
      "call 0",
      "single",
    ]);
  });
});

describe("calls that were found by their prompts or answers", () => {
  const found = new Set([callKey(GROUP, 0), callKey(GROUP, 7)]);

  it("have lines beside those whose names have the text", () => {
    expect(listed(rowsOf(stateOf(threeKinds()), { ...ALL_CALLS, text: "Call 1" }, found))).toEqual([
      GROUP,
      "call 0",
      "call 1",
    ]);
  });

  it("have none before they begin, and are counted apart", () => {
    expect(foundWithoutRow(stateOf(threeKinds()), found)).toBe(1);
    expect(foundWithoutRow(stateOf(threeKinds()), new Set())).toBe(0);
  });
});

describe("the address of a run's page", () => {
  it.each(SHOWN)("keeps which calls are shown, %s, and the text that is searched", (shown) => {
    const wanted = { ...ALL_CALLS, shown, text: "a & b?" };
    expect(wantedIn(addressOfWanted(wanted))).toEqual(wanted);
  });

  it("is plain for all calls, and one with an unknown kind shows all", () => {
    expect([addressOfWanted(ALL_CALLS), wantedIn("?show=nothing&other=1")]).toEqual(["", ALL_CALLS]);
  });
});
