import { describe, expect, it } from "vitest";
import { parseDag, parsePlanTask } from "../../../../src/contract/graph/dag.ts";
import { parseDagPatch } from "../../../../src/contract/graph/patch.ts";
import { GRAPH_TASKS_MAX, TASK_ID_CHARS_MAX } from "../../../../src/limits.ts";

function parsed(body: unknown) {
  const result = parseDag(body);
  if (!result.ok) throw new Error(JSON.stringify(result.reason));
  return result.value;
}

function paramOf(body: unknown): string | null | undefined {
  const result = parseDag(body);
  if (result.ok || result.reason.reason !== "invalid_request") return undefined;
  return result.reason.param;
}

const withTask = (fields: object) => ({ tasks: [{ id: "a", prompt: "one", ...fields }] });

describe("the body of a graph", () => {
  it("has tasks with the defaults of the top level", () => {
    const { tasks, defaults } = parsed({
      tasks: [
        { id: "a", prompt: "one" },
        { id: "b", prompt: "two", model: "m2", system: "own" },
      ],
      model: "m1",
      system: "shared",
    });
    expect(tasks.map(({ call }) => [call.facts.model, call.body.system])).toEqual([
      ["m1", "shared"],
      ["m2", "own"],
    ]);
    expect(defaults).toEqual({ system: "shared" });
  });

  it("keeps every field of a task under its name in the core", () => {
    const fields = {
      dependencies: ["b"],
      foreach: "{{b.output.json.x}}",
      max_items: 5,
      run_if: { at_least: 0.5 },
      max_retries: 2,
      fallback: "none",
      alternatives: ["c"],
      context_limit_chars: 40,
      phase: "verify",
      estimated_duration_ms: 1_000,
    };
    expect(parsed(withTask(fields)).tasks[0]).toMatchObject({
      id: "a",
      body: { prompt: "one" },
      dependencies: ["b"],
      foreach: "{{b.output.json.x}}",
      maxItems: 5,
      runIf: { atLeast: 0.5 },
      maxRetries: 2,
      fallback: "none",
      alternatives: ["c"],
      contextLimitChars: 40,
      phase: "verify",
      estimatedDurationMs: 1_000,
    });
  });

  it("takes dependencies as a map, too, and adds those that a task names", () => {
    const { tasks } = parsed({
      tasks: [
        { id: "a", prompt: "one" },
        { id: "b", prompt: "two" },
        { id: "c", prompt: "three", dependencies: ["a"] },
      ],
      dependencies: { c: ["b"] },
    });
    expect(tasks.map(({ dependencies }) => dependencies)).toEqual([[], [], ["a", "b"]]);
    expect(paramOf({ tasks: [{ id: "a", prompt: "one" }], dependencies: { x: ["a"] } })).toBe("dependencies.x");
  });

  it("has options with defaults", () => {
    const defaults = { inject: "template", onError: "continue", schedule: "critical_path", concurrency: null };
    expect(parsed(withTask({}))).toMatchObject({ ...defaults, detach: true, deadlineMs: null, onLost: "retry" });
    const options = { inject: "markdown", on_error: "abort", schedule: "fifo", concurrency: 3 };
    expect(parsed({ ...withTask({}), options, detach: false, deadline_ms: 5 })).toMatchObject({
      inject: "markdown",
      onError: "abort",
      schedule: "fifo",
      concurrency: 3,
      detach: false,
      deadlineMs: 5,
    });
  });

  it("is refused by the path of the field that is wrong", () => {
    const cases: [path: string | null, body: unknown][] = [
      [null, "text"],
      ["tasks", {}],
      ["tasks", { tasks: [] }],
      ["tasks[0].id", { tasks: [{ prompt: "one" }] }],
      ["tasks[0].prompt", { tasks: [{ id: "a" }] }],
      ["tasks[0].id", withTask({ id: "has space" })],
      ["tasks[0].id", withTask({ id: "a.b" })],
      ["tasks[0].id", withTask({ id: "item" })],
      ["tasks[0].max_retries", withTask({ max_retries: 10 })],
      ["tasks[0].max_items", withTask({ max_items: 0 })],
      ["tasks[0].run_if.at_least", withTask({ run_if: { at_least: 1.1 } })],
      ["tasks[0].run_if", withTask({ run_if: "all" })],
      ["tasks[0].context_limit_chars", withTask({ context_limit_chars: 0 })],
      ["tasks[0].prompt", withTask({ prompt: "\0" })],
      ["tasks[0].depends_on", withTask({ depends_on: ["b"] })],
      ["options.scheduler", { ...withTask({}), options: { scheduler: "fifo" } }],
      ["results", { ...withTask({}), results: {} }],
      ["tasks[0].tier", withTask({ tier: "P3" })],
    ];
    for (const [path, body] of cases) expect(paramOf(body), JSON.stringify(body)).toBe(path);
  });

  it("is refused with more dependencies than its bound, whatever they are, before each is looked at", () => {
    const many = Array.from({ length: 200_000 }, () => 1);
    const task = { id: "a", prompt: "p", dependencies: many };
    const refused = [
      parseDag({ tasks: [task] }),
      parseDag({ tasks: [], dependencies: { a: many } }),
      parseDag({ tasks: [], dependencies: Object.fromEntries(many.map((_, at) => [`k${at}`, 1])) }),
      parsePlanTask(task),
      parseDagPatch({ version: 1, operations: [{ op: "add_task", task }] }, {}),
    ];
    for (const read of refused) expect(JSON.stringify(read)).toContain("expected at most");
  });

  it("has ids up to their bound, and tasks up to theirs", () => {
    expect(paramOf(withTask({ id: "x".repeat(TASK_ID_CHARS_MAX) }))).toBeUndefined();
    expect(paramOf(withTask({ id: "x".repeat(TASK_ID_CHARS_MAX + 1) }))).toBe("tasks[0].id");
    const tasks = Array.from({ length: GRAPH_TASKS_MAX + 1 }, () => null);
    expect(JSON.stringify(parseDag({ tasks }))).toContain(`at most ${GRAPH_TASKS_MAX}`);
  });
});
