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

describe("the condition of an alternative", () => {
  const alternatives = (sent: unknown): unknown => {
    const parsed = parseDag({ tasks: [{ id: "b", prompt: "x", alternatives: [sent] }] });
    return parsed.ok ? parsed.value.tasks[0]?.alternatives[0] : toWire(parsed.reason).error.message;
  };

  it("is read as that of a run_if; an alternative without one is its id", () => {
    expect(alternatives("c")).toBe("c");
    const when = { any: [{ task: "a", equals: "x" }, { else: "d" }] };
    expect(alternatives({ id: "c", when })).toEqual({
      id: "c",
      when: { any: [{ task: "a", test: { kind: "equals", text: "x" } }, { otherwise: "d" }] },
    });
  });

  it.each<[sent: unknown, said: string]>([
    [
      { id: "c", when: { task: "a", json: "high" } },
      "tasks[0].alternatives[0].when.json: expected a condition such as",
    ],
    [{ id: "c", when: "any" }, "tasks[0].alternatives[0]: expected the id of a task"],
    [{ id: "c" }, "tasks[0].alternatives[0]: expected the id of a task"],
    [3, 'tasks[0].alternatives[0]: expected the id of a task, or {"id": it, "when": a condition}'],
  ])("refuses %j with a sentence", (sent, said) => {
    expect(alternatives(sent)).toContain(said);
  });
});
