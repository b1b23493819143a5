import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonLines, type PlanEvent, type PlanLines } from "../../../../../src/run/graph/plan/lines.ts";
import { llmCompilerLines, type PlanStep } from "../../../../../src/run/graph/plan/llm-compiler.ts";
import { GRAPH_FAULTS_MAX, PLAN_LINE_CHARS_MAX } from "../../../../../src/limits.ts";

function readAll<T>(lines: PlanLines<T>, chunks: readonly string[]): PlanEvent<T>[] {
  return [...chunks.flatMap((chunk) => lines.feed(chunk)), ...lines.end()];
}

/** The text cut at these places, which may repeat and lie behind its end. */
function cutAt(text: string, places: readonly number[]): string[] {
  const sorted = [0, ...places.toSorted((a, b) => a - b), text.length];
  return sorted.slice(1).map((place, at) => text.slice(sorted[at], place));
}

const steps = (text: string): PlanStep[] =>
  readAll(llmCompilerLines([]), [text]).flatMap((event) => (event.kind === "task" ? [event.task] : []));
const badOf = (text: string): number[] =>
  readAll(llmCompilerLines([]), [text]).flatMap((event) => (event.kind === "bad" ? [event.line] : []));

describe("a plan of JSON lines", () => {
  it("gives each task when its line is complete, not before", () => {
    const lines = jsonLines();
    expect(lines.feed('{"id":"a"}')).toEqual([]);
    expect(lines.feed("\n")).toEqual([{ kind: "task", line: 1, task: { id: "a" } }]);
    expect(lines.feed('\n{"id":"b"}\r\n{"id"')).toEqual([{ kind: "task", line: 3, task: { id: "b" } }]);
    expect(lines.feed(':"c"}')).toEqual([]);
    expect(lines.end()).toEqual([
      { kind: "task", line: 4, task: { id: "c" } },
      { kind: "end", line: 4 },
    ]);
    expect(lines.end()).toEqual([]);
  });

  it("reports a bad line by its number, and reads on", () => {
    const events = readAll(jsonLines(), ['{"id":"a"}\nnot JSON\n{"id":"b"}\n']);
    expect(events.map(({ kind, line }) => `${kind} ${line}`)).toEqual(["task 1", "bad 2", "task 3", "end 3"]);
  });

  it("ends after as many bad lines as are listed, so that no text makes it run for ever", () => {
    const lines = jsonLines();
    const events = lines.feed("bad\n".repeat(1_000));
    expect(events).toHaveLength(GRAPH_FAULTS_MAX + 1);
    expect(events.at(-1)?.kind).toBe("end");
    expect(lines.feed('{"id":"a"}\n')).toEqual([]);
  });

  it("ends at a line that is too long, instead of keeping it", () => {
    const lines = jsonLines();
    expect(lines.feed("x".repeat(PLAN_LINE_CHARS_MAX))).toEqual([]);
    expect(lines.feed("x").map(({ kind }) => kind)).toEqual(["bad", "end"]);
  });

  it("says the same however its text is cut", () => {
    const text = '{"id":"a"}\r\n\n{"id":"é😀"}\nbad\n{"id":"c"}';
    const whole = readAll(jsonLines(), [text]);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (places) => {
        expect(readAll(jsonLines(), cutAt(text, places))).toEqual(whole);
      }),
    );
  });
});

describe("a plan of LLMCompiler", () => {
  it("has a task per step: its number, its function, and for a model its name with its arguments as they were written", () => {
    const text = `Thought: two searches
1. search("height of the Eiffel Tower")
2. search('it\\'s "tall"')
3. math("$1 / $2", ["\${1}", "x, y"])
4. join()
<END_OF_PLAN>`;
    expect(steps(text)).toEqual([
      { id: "1", phase: "search", prompt: 'search("height of the Eiffel Tower")' },
      { id: "2", phase: "search", prompt: "search('it\\'s \"tall\"')" },
      { id: "3", phase: "math", prompt: 'math("$1 / $2", ["${1}", "x, y"])' },
    ]);
    expect(badOf(text)).toEqual([]);
  });

  it("keeps brackets and commas inside quotes and brackets together", () => {
    expect(steps('1. f("a, b) c", g(x, [1, 2]), $1)')).toEqual([
      { id: "1", phase: "f", prompt: 'f("a, b) c", g(x, [1, 2]), $1)' },
    ]);
  });

  it("calls the tools that it knows, whose parameters name its arguments in their order", () => {
    const tools = [
      { name: "search", parameters: { type: "object", properties: { query: {}, limit: {}, exact: {} } } },
      { name: "any" },
    ];
    const text =
      '1. search("a, b", 3, True)\n2. search($1)\n3. any("x", [1, 2], y)\n4. any()\n5. search("a", 1, 2, 3)\n6. more(1)';
    expect(readAll(llmCompilerLines(tools), [text])).toEqual([
      {
        kind: "task",
        line: 1,
        task: { id: "1", phase: "search", tool: "search", input: { query: "a, b", limit: 3, exact: true } },
      },
      { kind: "task", line: 2, task: { id: "2", phase: "search", tool: "search", input: { query: "$1" } } },
      { kind: "task", line: 3, task: { id: "3", phase: "any", tool: "any", input: { args: ["x", [1, 2], "y"] } } },
      { kind: "task", line: 4, task: { id: "4", phase: "any", tool: "any", input: { args: [] } } },
      { kind: "bad", line: 5, message: "has 4 arguments, and the tool search has fewer parameters" },
      { kind: "task", line: 6, task: { id: "6", phase: "more", prompt: "more(1)" } },
      { kind: "end", line: 6 },
    ]);
  });

  it("ends at join, or at the mark, and ignores what follows", () => {
    for (const end of ["3. join()", "join()", '3. join("why")', "<END_OF_PLAN>"]) {
      const lines = llmCompilerLines([]);
      const events = lines.feed(`1. f("a")\n${end}\n2. f("b")\n`);
      expect(
        events.map(({ kind }) => kind),
        end,
      ).toEqual(["task", "end"]);
    }
  });

  it("reports bad lines by their numbers: no step, an open quote or bracket", () => {
    expect(
      badOf('1. f("a")\nSure, here is more\n2. f("b\n3. f("c"\n4. f()\n5. f("d") and\n6. f("e") # fine\n'),
    ).toEqual([2, 3, 4, 6]);
  });

  it("says the same however its text is cut", () => {
    const text = 'Thought: é😀\r\n1. f("a\\"b")\nbad line\n2. g($1)\n<END_OF_PLAN>\nmore';
    const whole = readAll(llmCompilerLines([]), [text]);
    expect(whole.map(({ kind }) => kind)).toEqual(["task", "bad", "task", "end"]);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (places) => {
        expect(readAll(llmCompilerLines([]), cutAt(text, places))).toEqual(whole);
      }),
    );
  });
});
