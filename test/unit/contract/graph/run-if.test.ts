/** `run_if` as clients write it: what it means, and the sentence that refuses what means nothing. */
import { describe, expect, it } from "vitest";
import { parseDag } from "../../../../src/contract/graph/dag.ts";
import { toWire } from "../../../../src/errors.ts";

function read(runIf: unknown): unknown {
  const parsed = parseDag({ tasks: [{ id: "b", prompt: "x", run_if: runIf }] });
  return parsed.ok ? parsed.value.tasks[0]?.runIf : toWire(parsed.reason).error.message;
}

describe("a condition on outputs", () => {
  it("compares a value in the JSON of an output", () => {
    const test = { kind: "json", key: "score", operator: ">", value: 0.5 };
    expect(read({ task: "a", json: "$.score > 0.5" })).toEqual({ condition: { task: "a", test } });
  });

  it("compares a text", () => {
    expect(read({ task: "a", equals: "yes" })).toEqual({
      condition: { task: "a", test: { kind: "equals", text: "yes" } },
    });
    const pattern = { kind: "matches", source: "^y", flags: "i" };
    expect(read({ task: "a", matches: "^y", flags: "i" })).toEqual({ condition: { task: "a", test: pattern } });
  });

  it("combines in two levels", () => {
    const contains = (text: string) => ({ task: "a", test: { kind: "contains", text } });
    expect(
      read({ any: [{ all: [{ task: "a", contains: "x" }, { else: "c" }] }, { task: "a", contains: "y" }] }),
    ).toEqual({ condition: { any: [{ all: [contains("x"), { otherwise: "c" }] }, contains("y")] } });
  });

  it.each<[sent: unknown, said: string]>([
    [{ task: "a", json: "score is high" }, "tasks[0].run_if.json: expected a condition such as"],
    [{ task: "a", json: "$.x == null" }, "tasks[0].run_if.json: can never hold: null is no answer"],
    [{ task: "a", json: "$.x < null" }, "tasks[0].run_if.json: expected a condition such as"],
    [{ task: "a", matches: "(a)\\1" }, "tasks[0].run_if.matches: a back-reference is not supported in patterns"],
    [{ task: "a", matches: "(" }, "tasks[0].run_if.matches: "],
    [{ task: "a" }, "tasks[0].run_if: expected exactly one of json, equals, contains, matches"],
    [{ task: "a", equals: "x", contains: "y" }, "tasks[0].run_if: expected exactly one of"],
    [{ task: "a", equals: "x", flags: "i" }, "tasks[0].run_if.flags is for matches only"],
    [{ any: [{ task: "a", json: "?" }] }, "tasks[0].run_if.any[0].json: expected a condition such as"],
    [
      { task: "a", code: "true" },
      'unknown field "tasks[0].run_if.code"; expected one of task, json, equals, contains, matches, flags',
    ],
    [{ all: [{ all: [{ all: [{ else: "a" }] }] }] }, "tasks[0].run_if: expected"],
    [{ all: [] }, "tasks[0].run_if.all: expected at least 1 item"],
    ["never", 'tasks[0].run_if: expected "all_success", "any", "always"'],
  ])("refuses %j with a sentence", (sent, said) => {
    expect(read(sent)).toContain(said);
  });
});
