import { describe, expect, it } from "vitest";
import { Batch, Budget, OwnRun, Refusals } from "../../../cli/batch/server/documents.ts";
import { Run, RunPage, TapeLine } from "../../../cli/gateway/documents.ts";

describe("documents of the gateway", () => {
  const nothing = {
    ...{ id: "", name: "", status: "", created_at: "" },
    budget: { usd: { spent: 0, reserved: 0, limit: 0 } },
    stats: { total_queries: 0, pending_queries: 0 },
    metrics: { failures: {} },
    match: { where: "", excerpt: "" },
  };

  it.each([undefined, null, "text", [], {}])("read %j as one that says nothing", (value) => {
    expect(Run.parse(value)).toEqual(nothing);
    expect(RunPage.parse(value)).toEqual({
      ...{ data: [], unread: [], missing_parts: 0 },
      search: { runs: 0, older: 0, in_part: [] },
    });
  });

  it("keep what is as it should be beside what is not", () => {
    const run = {
      id: "run_1",
      name: 7,
      budget: { usd: { spent: 0.5, limit: null } },
      metrics: { failures: { a: 1, b: "" } },
    };
    expect(Run.parse(run)).toEqual({
      ...nothing,
      id: "run_1",
      budget: { usd: { spent: 0.5, reserved: 0, limit: 0 } },
      metrics: { failures: { a: 1, b: 0 } },
    });
    expect(RunPage.parse({ data: [run, 5], missing_parts: 2 })).toMatchObject({
      data: [{ id: "run_1" }, nothing],
      missing_parts: 2,
    });
  });

  it("tell a cut request of a tape from a whole one", () => {
    expect(TapeLine.parse({ request: { model: "m", body: { a: 1 } } }).cut).toBeUndefined();
    expect(TapeLine.parse({ cut: { text: "long" } }).cut).toEqual({ text: "long", model: "" });
  });
});

describe("documents of a server with batches", () => {
  it("count what is counted, in whole lines", () => {
    const counts = (request_counts: unknown) => Batch.parse({ status: "s", request_counts }).request_counts;
    expect(counts({ total: 3.9, completed: -1, failed: "2" })).toEqual({ total: 3, completed: 0, failed: 0 });
    expect(counts(undefined)).toEqual({ total: 0, completed: 0, failed: 0 });
    expect(Batch.safeParse({ request_counts: {} }).success).toBe(false);
  });

  it("list why an input was refused, with what is known of each line", () => {
    const data = [{ line: 2, message: "bad", code: null }, { code: "c" }, "odd"];
    expect(Refusals.parse({ errors: { data } })).toEqual([
      { line: 2, message: "bad", code: null },
      { line: null, message: null, code: "c" },
      { line: null, message: null, code: null },
    ]);
    expect(Refusals.parse({ errors: null })).toEqual([]);
  });

  it("take no amount and no id that a line of output or an address could not have", () => {
    expect(Budget.safeParse({ usd: { spent: "1" } }).success).toBe(false);
    expect(OwnRun.safeParse({ id: "run_1/../x" }).success).toBe(false);
    expect(OwnRun.parse({ id: "run_1", name: "n" })).toEqual({ id: "run_1" });
  });
});
