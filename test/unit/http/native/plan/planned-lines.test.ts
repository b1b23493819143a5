/** The lines of a planner: tasks, and what models write around them. */
import { expect, it } from "vitest";
import { plannedLines } from "../../../../../src/http/native/plan/planned-lines.ts";

function read(text: string, tasksMax = 10, model: string | null = null) {
  const lines = plannedLines({ tasksMax, model, written: [] });
  return [...lines.feed(text), ...lines.end()];
}

it("keeps the tasks as they are written, without those beyond their number", () => {
  const written: Record<string, unknown>[] = [];
  const lines = plannedLines({ tasksMax: 2, model: "m", written });
  lines.feed('Plan:\n{"id": "a", "prompt": "x"}\n{"id": "b"\n');
  expect(written).toEqual([{ id: "a", prompt: "x" }]);
  lines.feed('{"id": "c", "tool": "search", "input": {"query": "{{a.output}}"}}\n{"id": "d", "prompt": "y"}');
  lines.end();
  expect(written).toEqual([
    { id: "a", prompt: "x" },
    { id: "c", tool: "search", input: { query: "{{a.output}}" } },
  ]);
});

it("reads a task a line, and skips prose, fences and brackets around them", () => {
  expect(read("{{t1.output}} is what comes first.\n")).toEqual([{ kind: "end", line: 1 }]);
  expect(read('Sure!\n```json\n[\n{"id": "t1", "prompt": "a"},\n{"id": "t2", "prompt": "b"}\n]\n```\n')).toEqual([
    { kind: "task", line: 4, task: { id: "t1", prompt: "a" } },
    { kind: "task", line: 5, task: { id: "t2", prompt: "b" } },
    { kind: "end", line: 7 },
  ]);
});

it("refuses a line that is no JSON, and tasks beyond their number", () => {
  expect(read('{"id": "t1"\n{"id": "t1", "prompt": "a"}\n{"id": "t2", "prompt": "b"}\n', 1)).toMatchObject([
    { kind: "bad", line: 1 },
    { kind: "task", line: 2 },
    { kind: "bad", line: 3, message: "is task 2; expected at most 1" },
    { kind: "end" },
  ]);
});

it("gives tasks the model of the request, but not those that name one or call a tool", () => {
  const lines =
    '{"id": "a", "prompt": "x"}\n{"id": "b", "prompt": "x", "model": "own"}\n{"id": "c", "tool": "search"}\n';
  const models = read(lines, 10, "m").map((event) => (event.kind === "task" ? event.task : null));
  expect(models).toEqual([
    { id: "a", prompt: "x", model: "m" },
    { id: "b", prompt: "x", model: "own" },
    { id: "c", tool: "search" },
    null,
  ]);
});
