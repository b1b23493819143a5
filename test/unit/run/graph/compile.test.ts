import { describe, expect, it } from "vitest";
import {
  FALLBACK_CHARS_MAX,
  FOREACH_ITEMS_DEFAULT,
  GRAPH_EDGES_MAX,
  GRAPH_FAULTS_MAX,
  GRAPH_SLOTS_MAX,
  GRAPH_TASKS_MAX,
  TASK_REFERENCES_MAX,
} from "../../../../src/limits.ts";
import { compiled, faultsOf, taskOf, valid } from "../../../support/graphs.ts";

describe("the edges of a task", () => {
  it("are its stated dependencies and its references, each once, ascending", () => {
    const { graph } = valid([
      taskOf("a"),
      taskOf("b"),
      taskOf("1"),
      taskOf("z", { dependencies: ["b", "a"], body: { prompt: "{{a.output}} $1 {{a.output.json.x}}" } }),
    ]);
    expect(graph.tasks[3]?.dependencies).toEqual([0, 1, 2]);
  });

  it("come from the texts of messages, too", () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "{{a.output}}" }] }];
    expect(valid([taskOf("a"), taskOf("z", { body: { messages } })]).graph.tasks[1]?.dependencies).toEqual([0]);
  });

  it("come with a bound on what the prompt inserts: six times the bytes for JSON, which can grow", () => {
    const prompt = "{{a.output}} {{a.output}} {{b.output.json.x}}";
    const task = valid([taskOf("a"), taskOf("b"), taskOf("z", prompt)]).graph.tasks[2];
    expect(task?.inserted).toEqual([
      [0, 2],
      [1, 6],
    ]);
    expect(valid([taskOf("a"), taskOf("z", { dependencies: ["a"] })]).graph.tasks[1]).not.toHaveProperty("inserted");
  });

  it("are all inserted once more with markdown", () => {
    const tasks = [taskOf("a"), taskOf("b"), taskOf("z", { dependencies: ["b"], body: { prompt: "{{a.output}}" } })];
    expect(valid(tasks, { inject: "markdown" }).graph.tasks[2]?.inserted).toEqual([
      [0, 2],
      [1, 1],
    ]);
  });

  it("are none for a number that is no task's id, which stays text with a warning", () => {
    const { graph, warnings } = valid([taskOf("a"), taskOf("b", "It costs $5 or ${6}")]);
    expect(graph.tasks[1]?.dependencies).toEqual([]);
    expect(warnings.find(({ code }) => code === "unused_reference")?.tasks).toEqual(["b"]);
  });
});

describe("the slots of a graph", () => {
  it("are contiguous ranges: one per task, max_items per foreach, and those of its source for a pipeline", () => {
    const { graph } = valid([
      taskOf("polish", { foreach: "{{draft.outputs}}", body: { prompt: "Polish {{item}}" } }),
      taskOf("find"),
      taskOf("draft", { foreach: "{{find.output.json.items}}", maxItems: 7, body: { prompt: "Draft {{item}}" } }),
      taskOf("report", "{{polish.outputs}}"),
    ]);
    expect(graph.tasks.map(({ id, first, slots }) => `${id} ${first}+${slots}`)).toEqual([
      "polish 0+7",
      "find 7+1",
      "draft 8+7",
      "report 15+1",
    ]);
    expect(graph.slots).toBe(16);
    expect(graph.tasks.map(({ foreach }) => foreach)).toEqual([
      { source: 2, path: [], elementwise: true },
      undefined,
      { source: 1, path: ["items"] },
      undefined,
    ]);
  });

  it("have a default for a foreach without max_items", () => {
    const { graph } = valid([taskOf("a"), taskOf("b", { foreach: "{{a.output}}", body: { prompt: "Do {{item}}" } })]);
    expect(graph.tasks[1]).toMatchObject({ slots: FOREACH_ITEMS_DEFAULT, foreach: { source: 0, path: [] } });
  });

  it("are at most as many as a group has ids for", () => {
    const withItems = (maxItems: number) => [
      taskOf("a"),
      taskOf("b", { foreach: "{{a.output}}", maxItems, body: { prompt: "Do {{item}}" } }),
    ];
    expect(valid(withItems(GRAPH_SLOTS_MAX - 1)).graph.slots).toBe(GRAPH_SLOTS_MAX);
    expect(faultsOf(withItems(GRAPH_SLOTS_MAX))).toEqual(["too_large -"]);
  });
});

describe("a graph is refused for", () => {
  it("an id that two tasks have", () => {
    expect(faultsOf([taskOf("a"), taskOf("b"), taskOf("a")])).toEqual(["duplicate_id tasks[2].id"]);
  });

  it("a dependency or a reference that no task has", () => {
    const tasks = [
      taskOf("a", { dependencies: ["x"] }),
      taskOf("b", "{{y.output}}"),
      taskOf("c", { foreach: "{{z.outputs}}" }),
    ];
    expect(faultsOf(tasks)).toEqual([
      "unknown_dependency tasks[0].dependencies[0]",
      "unknown_dependency tasks[1].prompt",
      "unknown_dependency tasks[2].foreach",
    ]);
  });

  it("a task that depends on itself", () => {
    expect(faultsOf([taskOf("a", { dependencies: ["a"] })])).toEqual(["self_reference tasks[0].dependencies[0]"]);
    expect(faultsOf([taskOf("1", "again: $1")])).toEqual(["self_reference tasks[0].prompt"]);
  });

  it("a cycle, with its path: each task depends on the next", () => {
    const result = compiled([
      taskOf("start"),
      taskOf("a", "{{b.output}}"),
      taskOf("b", { dependencies: ["start", "a"] }),
    ]);
    expect(result).toMatchObject({ ok: false, faults: [{ code: "cycle", cycle: ["a", "b", "a"] }] });
  });

  it("a foreach over anything but one reference to a list", () => {
    for (const foreach of ["items", "{{item}}", "{{a.outputs}}, {{a.outputs}}", ""]) {
      expect(faultsOf([taskOf("a"), taskOf("b", { foreach })]), foreach).toEqual(["invalid_foreach tasks[1].foreach"]);
    }
  });

  it("a part of the outputs of a foreach, which are many", () => {
    const each = taskOf("each", { foreach: "{{a.output}}" });
    expect(faultsOf([taskOf("a"), each, taskOf("z", "{{each.output}}")])).toEqual([
      "invalid_reference tasks[2].prompt",
    ]);
    expect(faultsOf([taskOf("a"), each, taskOf("z", { foreach: "{{each.output.json.x}}" })])).toEqual([
      "invalid_foreach tasks[2].foreach",
    ]);
  });

  it("max_items without an array that it could bound", () => {
    const tasks = [
      taskOf("a", { maxItems: 3 }),
      taskOf("b", { foreach: "{{a.output}}" }),
      taskOf("c", { foreach: "{{b.outputs}}", maxItems: 3 }),
    ];
    expect(faultsOf(tasks)).toEqual(["invalid_foreach tasks[0].max_items", "invalid_foreach tasks[2].foreach"]);
  });

  it("an element outside a foreach", () => {
    expect(faultsOf([taskOf("a", "Do {{item}}")])).toEqual(["invalid_reference tasks[0].prompt"]);
  });

  it("references beyond the bound of one task", () => {
    const withReferences = (count: number) => [taskOf("a"), taskOf("b", "{{a.output}}".repeat(count))];
    expect(faultsOf(withReferences(TASK_REFERENCES_MAX))).toEqual([]);
    expect(faultsOf(withReferences(TASK_REFERENCES_MAX + 1))).toEqual(["too_large tasks[1].prompt"]);
  });

  it("more tasks, edges or fallback text than its bounds", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => taskOf(`t${index}`));
    expect(faultsOf(many(GRAPH_TASKS_MAX))).toEqual([]);
    expect(faultsOf(many(GRAPH_TASKS_MAX + 1))).toEqual(["too_large tasks"]);
    const layer = Array.from({ length: 100 }, (_, index) => `t${index}`);
    const withEdges = (count: number) => [
      ...many(100),
      ...Array.from({ length: Math.ceil(count / 100) }, (_, index) =>
        taskOf(`u${index}`, { dependencies: layer.slice(0, Math.min(100, count - index * 100)) }),
      ),
    ];
    expect(faultsOf(withEdges(GRAPH_EDGES_MAX))).toEqual([]);
    expect(faultsOf(withEdges(GRAPH_EDGES_MAX + 1))).toEqual(["too_large -"]);
    const half = "x".repeat(FALLBACK_CHARS_MAX / 2);
    expect(faultsOf([taskOf("a", { fallback: half }), taskOf("b", { fallback: half })])).toEqual([]);
    expect(faultsOf([taskOf("a", { fallback: half }), taskOf("b", { fallback: `${half}x` })])).toEqual(["too_large -"]);
  });

  it("no more faults than its bound lists", () => {
    const tasks = Array.from({ length: 100 }, (_, index) => taskOf(`t${index}`, { dependencies: ["none"] }));
    expect(faultsOf(tasks)).toHaveLength(GRAPH_FAULTS_MAX);
  });
});

describe("alternatives", () => {
  const plan = taskOf("plan", { alternatives: ["short", "shorter"] });

  it("know which task they replace", () => {
    const { graph } = valid([plan, taskOf("short"), taskOf("shorter"), taskOf("end", "{{plan.output}}")]);
    expect(graph.tasks[0]?.alternatives).toEqual([1, 2]);
    expect(graph.tasks.map(({ alternativeOf }) => alternativeOf)).toEqual([undefined, 0, 0, undefined]);
  });

  it("are refused where they would be ambiguous", () => {
    const short = taskOf("short");
    const shorter = taskOf("shorter");
    expect(faultsOf([plan, short, shorter, taskOf("end", "{{short.output}}")])).toEqual([
      "invalid_alternative tasks[3].dependencies",
    ]);
    expect(faultsOf([plan, short, shorter, taskOf("other", { alternatives: ["short"] })])).toEqual([
      "invalid_alternative tasks[3].alternatives[0]",
    ]);
    expect(faultsOf([plan, taskOf("short", "{{plan.output}}"), shorter])).toEqual([
      "invalid_alternative tasks[1].dependencies",
    ]);
    expect(faultsOf([plan, taskOf("short", { alternatives: ["shorter"] }), shorter])).toContain(
      "invalid_alternative tasks[0].alternatives[0]",
    );
    expect(faultsOf([taskOf("a"), taskOf("b", { foreach: "{{a.output}}", alternatives: ["a"] })])).toContain(
      "invalid_alternative tasks[1].alternatives[0]",
    );
  });

  const when = { task: "size", test: { kind: "equals" as const, text: "small" } };
  const tried = [taskOf("size"), taskOf("plan", { alternatives: [{ id: "short", when }] })];

  it("have the condition under which they are tried as their own, and wait for what it names", () => {
    const { graph } = valid([...tried, taskOf("facts"), taskOf("short", "{{facts.output}}")]);
    expect(graph.tasks.map(({ runIf, dependencies }) => [runIf, dependencies])).toEqual([
      [undefined, []],
      [undefined, []],
      [undefined, []],
      [{ condition: { task: 0, test: when.test } }, [0, 2]],
    ]);
    expect([graph.tasks[1]?.alternatives, graph.tasks[3]?.alternativeOf]).toEqual([[3], 1]);
    expect(JSON.parse(JSON.stringify(graph))).toEqual(graph);
    // What stands before its prompt is counted.
    const sections = valid([...tried, taskOf("short")], { inject: "markdown" }).graph;
    expect(sections.tasks[2]?.inserted).toEqual([[0, 1]]);
  });

  it("are refused with two conditions, and with one that looks at the alternative, its task, a foreach or nothing", () => {
    expect(faultsOf([...tried, taskOf("short", { runIf: "any" })])).toEqual([
      "invalid_alternative tasks[1].alternatives[0].when",
    ]);
    const looksAt = (task: string) => [
      taskOf("size"),
      taskOf("each", { foreach: "{{size.output.json}}" }),
      taskOf("plan", { alternatives: [{ id: "short", when: { ...when, task } }] }),
      taskOf("short"),
    ];
    expect(faultsOf(looksAt("short"))).toEqual(["invalid_alternative tasks[2].alternatives[0].when"]);
    expect(faultsOf(looksAt("plan"))).toEqual(["self_reference tasks[2].alternatives[0].when"]);
    expect(faultsOf(looksAt("each"))).toEqual(["invalid_condition tasks[2].alternatives[0].when"]);
    expect(faultsOf(looksAt("none"))).toEqual(["unknown_dependency tasks[2].alternatives[0].when"]);
    expect(faultsOf(looksAt("size"))).toEqual([]);
  });

  it("may not wait for a task that waits for the one they replace", () => {
    const tasks = [
      taskOf("plan", { alternatives: ["short"] }),
      taskOf("short", { dependencies: ["end"] }),
      taskOf("end", { dependencies: ["plan"] }),
    ];
    expect(faultsOf(tasks)).toEqual(["cycle -"]);
  });
});

describe("a compiled graph", () => {
  it("leaves out what has its default, and is the same after a round trip as JSON", () => {
    const { graph } = valid([taskOf("a"), taskOf("b", { dependencies: ["a"], runIf: "all_success" })]);
    expect(graph.tasks[1]).toEqual({ id: "b", first: 1, slots: 1, dependencies: [0], rank: 100 });
    expect(JSON.parse(JSON.stringify(graph))).toEqual(graph);
  });

  it("keeps every rule of a task", () => {
    const rules = {
      runIf: { atLeast: 0.5 },
      maxRetries: 0,
      fallback: "",
      contextLimitChars: 5,
      phase: "p",
      estimatedDurationMs: 1_000,
    };
    expect(valid([taskOf("a", rules)]).graph.tasks[0]).toMatchObject(rules);
  });
});

describe("warnings", () => {
  const codes = (tasks: Parameters<typeof valid>[0]): string[] => valid(tasks).warnings.map(({ code }) => code);

  it("name orphans in a graph that has edges, if there is more than one", () => {
    const edge = [taskOf("a"), taskOf("b", { dependencies: ["a"] })];
    expect(codes([...edge, taskOf("c"), taskOf("d")])).toEqual(["orphans"]);
    expect(codes([...edge, taskOf("c")])).toEqual([]);
    expect(codes([taskOf("a"), taskOf("b"), taskOf("c")])).toEqual([]);
  });

  it("name tasks of more than five minutes and prompts of a word", () => {
    expect(codes([taskOf("a", { estimatedDurationMs: 300_000 })])).toEqual([]);
    expect(codes([taskOf("a", { estimatedDurationMs: 300_001 })])).toEqual(["long_task"]);
    expect(codes([taskOf("a", "012345678")])).toEqual(["short_prompt"]);
    expect(codes([taskOf("a", "0123456789")])).toEqual([]);
  });

  it("reads the tasks that a condition names as dependencies, and refuses those that have no one output", () => {
    const test = { kind: "equals", text: "x" } as const;
    const on = (task: string) => ({ condition: { task, test } });
    const { graph } = valid([
      taskOf("a"),
      taskOf("b", { runIf: on("a") }),
      taskOf("c", { runIf: { condition: { otherwise: "b" } } }),
    ]);
    expect(graph.tasks.map(({ dependencies, runIf }) => [dependencies, runIf])).toEqual([
      [[], undefined],
      [[0], { condition: { task: 0, test } }],
      [[1], { condition: { otherwise: 1 } }],
    ]);
    const each = taskOf("each", { foreach: "{{a.output.json}}" });
    expect(faultsOf([taskOf("a"), each, taskOf("b", { runIf: on("each") })])).toEqual([
      "invalid_condition tasks[2].run_if",
    ]);
    expect(faultsOf([taskOf("a"), each, taskOf("b", { foreach: "{{each.outputs}}", runIf: on("each") })])).toEqual([]);
    expect(faultsOf([taskOf("a"), taskOf("b", { runIf: { condition: { otherwise: "a" } } })])).toEqual([
      "invalid_condition tasks[1].run_if",
    ]);
    expect(faultsOf([taskOf("a", { runIf: on("a") })])).toEqual(["self_reference tasks[0].run_if"]);
    expect(faultsOf([taskOf("a", { runIf: on("nobody") })])).toEqual(["unknown_dependency tasks[0].run_if"]);
    expect(faultsOf([taskOf("a", { runIf: on("b") }), taskOf("b", { runIf: on("a") })])).toEqual(["cycle -"]);
  });

  it("bounds the comparisons of a condition, and the conditions of a graph", () => {
    const terms = (count: number, text: string) => ({
      condition: { any: Array.from({ length: count }, () => ({ task: "a", test: { kind: "equals" as const, text } })) },
    });
    expect(faultsOf([taskOf("a"), taskOf("b", { runIf: terms(16, "x") })])).toEqual([]);
    expect(faultsOf([taskOf("a"), taskOf("b", { runIf: terms(17, "x") })])).toEqual(["too_large tasks[1].run_if"]);
    const long = Array.from({ length: 20 }, (_, at) => taskOf(`b${at}`, { runIf: terms(16, "x".repeat(900)) }));
    expect(faultsOf([taskOf("a"), ...long])).toEqual(["too_large -"]);
  });
});
