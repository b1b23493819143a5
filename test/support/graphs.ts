/** Graphs for tests: tasks as src/run/graph reads them, written briefly. */
import { compileGraph, type Compilation, type GraphRequest } from "../../src/run/graph/compile.ts";
import type { TaskSource } from "../../src/run/graph/read-task.ts";

/** A task by its id; its prompt, if a text is given, or any of its fields. */
export function taskOf(id: string, fields: string | Partial<TaskSource> = {}): TaskSource {
  const given = typeof fields === "string" ? { body: { prompt: fields } } : fields;
  return {
    id,
    body: { prompt: `This is task ${id}` },
    dependencies: [],
    foreach: null,
    maxItems: null,
    runIf: null,
    maxRetries: null,
    fallback: null,
    alternatives: [],
    contextLimitChars: null,
    phase: null,
    estimatedDurationMs: null,
    ...given,
  };
}

export function compiled(tasks: readonly TaskSource[], options: Partial<GraphRequest> = {}): Compilation {
  return compileGraph({ schedule: "critical_path", onError: "continue", inject: "template", ...options, tasks });
}

/** The compiled graph of valid tasks, with its figures and warnings. */
export function valid(
  tasks: readonly TaskSource[],
  options: Partial<GraphRequest> = {},
): Extract<Compilation, { ok: true }> {
  const result = compiled(tasks, options);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return result;
}

/** The faults of tasks as `code path`. */
export function faultsOf(tasks: readonly TaskSource[], options: Partial<GraphRequest> = {}): string[] {
  const result = compiled(tasks, options);
  return result.ok ? [] : result.faults.map(({ code, path }) => `${code} ${path ?? "-"}`);
}
