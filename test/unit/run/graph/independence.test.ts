import { describe, expect, it } from "vitest";
import { checkIndependence, dependenceMessage, type WorkItem } from "../../../../src/run/graph/independence.ts";
import { CONFLICTS_LISTED_MAX } from "../../../../src/limits.ts";

const item = (name: string, fields: Partial<WorkItem> = {}): WorkItem => ({
  name,
  texts: [`Do ${name}`],
  files: [],
  writes: [],
  outputLocation: null,
  ...fields,
});

/** The checks that fail, each with its items. */
const failing = (items: WorkItem[], hasAggregation = true): string[] =>
  checkIndependence(items, hasAggregation)
    .checks.filter(({ pass }) => !pass)
    .map(({ check, items: names }) => `${check}: ${names.join(" ")}`);

describe("independence", () => {
  it("passes five checks for calls that share nothing", () => {
    const result = checkIndependence([item("a", { files: ["x"] }), item("b", { writes: ["y"] })], true);
    expect(result).toMatchObject({ pass: true, conflicts: [], conflictCount: 0 });
    expect(result.checks).toHaveLength(5);
    expect(dependenceMessage(result)).toBeNull();
  });

  it("fails for a reference to a sibling, not for one to anything else", () => {
    const items = [
      item("1"),
      item("b", { texts: ["Continue $1"] }),
      item("c", { texts: ["{{b.output}} $5 {{none.output}}"] }),
    ];
    expect(failing(items)).toEqual(["no_dependency: b c"]);
    expect(failing([item("1", { texts: ["$1"] })])).toEqual([]);
  });

  it("fails for a call whose texts are all blank", () => {
    expect(failing([item("a", { texts: [" \n"] }), item("b", { texts: ["", "x"] })])).toEqual(["complete_context: a"]);
  });

  it("fails for a file that two calls name, whether they read or write it, and says which", () => {
    const items = [
      item("a", { files: ["auth.py"] }),
      item("b", { files: ["auth.py", "x.py"] }),
      item("c", { files: ["y.py"], writes: ["x.py", "y.py"] }),
    ];
    expect(failing(items)).toEqual(["no_shared_state: a b c"]);
    expect(checkIndependence(items, true).conflicts).toEqual([
      { file: "auth.py", items: ["a", "b"] },
      { file: "x.py", items: ["b", "c"] },
    ]);
  });

  it("fails for one output location of two calls, and for answers that nothing combines", () => {
    const items = [item("a", { outputLocation: "out.md" }), item("b", { outputLocation: "out.md" })];
    expect(failing(items, false)).toEqual(["distinct_output: a b", "aggregation_declared: "]);
  });

  it("is no reason to reject calls only because their answers are not combined", () => {
    expect(dependenceMessage(checkIndependence([item("a")], false))).toBeNull();
    const message = dependenceMessage(
      checkIndependence([item("a", { files: ["f"] }), item("b", { files: ["f"] })], true),
    );
    expect(message).toBe('the items are not independent: no_shared_state (a, b); "f" is named by a, b');
  });

  it("counts all conflicts and lists as many as its bound", () => {
    const items = Array.from({ length: 100 }, (_, index) => item(`i${index}`, { files: [`f${index % 50}`, "all"] }));
    const result = checkIndependence(items, true);
    expect(result.conflictCount).toBe(51);
    expect(result.conflicts).toHaveLength(CONFLICTS_LISTED_MAX);
    expect(Math.max(...result.conflicts.map(({ items: names }) => names.length))).toBe(CONFLICTS_LISTED_MAX);
  });
});
