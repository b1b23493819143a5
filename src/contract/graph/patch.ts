/** `PATCH /dag/:id`: changes of a graph that runs. Checks their form; what they do to the graph is src/run/graph's. */
import * as z from "zod";
import type { BodyOptions } from "../../call.ts";
import { GRAPH_OPERATIONS_MAX } from "../../limits.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../call-options.ts";
import { zodReason, type Parsed } from "../errors.ts";
import { strictFields } from "../strict-fields.ts";
import { isRecord } from "../../text/json/record.ts";
import { dagTask, edgeExcess, settingsInput, taskOf, type DagTask, type SentSettings } from "./dag.ts";
import { atFirstUse } from "../../at-first-use.ts";

const id = z.string();

const operation = atFirstUse(() =>
  z.discriminatedUnion("op", [
    z.strictObject({ op: z.literal("add_task"), task: dagTask() }),
    z.strictObject({
      op: z.literal("update_task"),
      task: dagTask().meta({ description: "The whole task as it is to be; its id says which task it replaces" }),
    }),
    z.strictObject({ op: z.literal("remove_task"), id }),
    z.strictObject({ op: z.literal("add_dependency"), id, dependency: id }),
    z.strictObject({ op: z.literal("remove_dependency"), id, dependency: id }),
  ]),
);

export const dagPatch = atFirstUse(() =>
  strictFields({
    version: z
      .int()
      .min(1)
      .max(Number.MAX_SAFE_INTEGER)
      .meta({ description: "The version that the client has seen; another is refused with 409" }),
    operations: z.array(operation()).min(1).max(GRAPH_OPERATIONS_MAX).meta({
      description: "Applied in their order, all or nothing. A task that has started, or has ended, stays as it is",
    }),
  }).meta({ id: "DagPatch" }),
);

/** A change as src/run/graph reads it, with the calls of its tasks. `defaults`: the very values that these inherit from their graph. */
export type DagPatch = { version: number; operations: DagOperation[]; defaults: BodyOptions };
export type DagOperation =
  | { op: "add_task"; task: DagTask }
  | { op: "update_task"; id: string; task: DagTask }
  | { op: "remove_task"; id: string }
  | { op: "add_dependency" | "remove_dependency"; id: string; dependency: string };

/** A parsed JSON body as a change; its tasks inherit the settings of their graph. Or the first reason to refuse its form. */
export function parseDagPatch(value: unknown, sent: SentSettings): Parsed<DagPatch> {
  const sentOperations: readonly unknown[] =
    isRecord(value) && Array.isArray(value["operations"]) ? value["operations"] : [];
  const excess = edgeExcess(sentOperations.map((each) => (isRecord(each) ? each["task"] : null)));
  if (excess !== null) return excess;
  const read = dagPatch().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const settings = parseSettings(settingsInput(sent), SETTINGS_DEFAULT, (field) => field);
  if (!settings.ok) return settings;
  const operations: DagOperation[] = [];
  for (const [index, each] of read.data.operations.entries()) {
    if (each.op !== "add_task" && each.op !== "update_task") {
      operations.push(each);
      continue;
    }
    const task = taskOf(each.task, settings.value, (field) => `operations[${index}].task.${field}`);
    if (!task.ok) return task;
    operations.push(
      each.op === "add_task" ? { op: each.op, task: task.value } : { op: each.op, id: task.value.id, task: task.value },
    );
  }
  return { ok: true, value: { version: read.data.version, operations, defaults: settings.value.body } };
}
