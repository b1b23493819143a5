/** What a planner writes line by line, as tasks. */
import { PlanLines } from "../../../run/graph/plan/lines.ts";
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";

/**
 * Reads the lines of a planner: each that begins with a brace is a task. Others are what models write around a plan. `model`: of
 * the tasks that name none; null = the run's. Tasks beyond `tasksMax` are bad lines. The others are added to `written` as they are.
 */
export function plannedLines({
  tasksMax,
  model,
  written,
}: {
  tasksMax: number;
  model: string | null;
  written: Record<string, unknown>[];
}): PlanLines<unknown> {
  let tasks = 0;
  return new PlanLines<unknown>((text) => {
    const line = text.trim().replace(/,$/, "");
    // A remark may begin with a reference.
    if (!line.startsWith("{") || line.startsWith("{{")) return { kind: "nothing" };
    const task = tryParse(line);
    if (!isRecord(task))
      return { kind: "bad", message: "is not JSON; expected one task, as a JSON object on one line" };
    tasks += 1;
    if (tasks > tasksMax) return { kind: "bad", message: `is task ${tasks}; expected at most ${tasksMax}` };
    written.push(task);
    // A tool task has no model.
    const isModelled = model !== null && task["tool"] === undefined && task["model"] === undefined;
    return { kind: "task", task: isModelled ? { ...task, model } : task };
  });
}
