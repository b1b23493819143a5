/**
 * Conditions over the outputs of other tasks, by which a graph takes one of its branches. They are data: what a text says is
 * compared, and never executed. Whether one holds depends on outputs only, so a restart decides as the graph did before.
 */
import type { JsonGate } from "../../call.ts";
import { CONDITION_OUTPUT_CHARS_MAX, PATTERN_ANSWER_STEPS_MIN, PATTERN_GROUP_STEPS_MAX } from "../../limits.ts";
import { canonicalJson } from "../../text/schema/canonical.ts";
import { compilePattern } from "../../text/pattern/pattern.ts";
import { jsonInAnswer, valueAt } from "./answer-json.ts";
import { compared } from "./json-gate.ts";

/** What an output is compared with. `equals` and `contains`: its text. `matches`: a pattern that is matched in linear time. */
export type OutputTest =
  | ({ kind: "json" } & JsonGate)
  | { kind: "equals" | "contains"; text: string }
  | { kind: "matches"; source: string; flags: string };

/**
 * A condition. `Task`: how it names tasks, by id as its client does, or by position. `otherwise`: that task was skipped because
 * its own condition does not hold.
 */
export type Condition<Task = number> =
  | { task: Task; test: OutputTest }
  | { otherwise: Task }
  | { all: readonly Condition<Task>[] }
  | { any: readonly Condition<Task>[] };

/** The tasks that a condition names, in its order, some perhaps several times. */
export function namedTasks<Task>(condition: Condition<Task>): Task[] {
  if ("task" in condition) return [condition.task];
  if ("otherwise" in condition) return [condition.otherwise];
  return ("all" in condition ? condition.all : condition.any).flatMap(namedTasks);
}

/** The same condition over other names of the tasks. */
export function renamed<From, To>(condition: Condition<From>, nameOf: (task: From) => To): Condition<To> {
  if ("task" in condition) return { ...condition, task: nameOf(condition.task) };
  if ("otherwise" in condition) return { otherwise: nameOf(condition.otherwise) };
  return "all" in condition
    ? { all: condition.all.map((part) => renamed(part, nameOf)) }
    : { any: condition.any.map((part) => renamed(part, nameOf)) };
}

/** Whether two conditions say the same of the same tasks, in the same order. */
export function areSame(a: Condition, b: Condition): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** What a condition is decided by. */
export type Evidence = {
  /** The output of a task that has ended; null = it has none. */
  outputOf: (task: number) => string | null;
  /** Whether a task was skipped because its own condition does not hold. */
  isDeclined: (task: number) => boolean;
  /** Slots of the graph: the steps of all patterns together are bounded. */
  slots: number;
};

/** Whether a condition holds. An output that does not exist, or has no such value, meets none. */
export function holds(condition: Condition, evidence: Evidence): boolean {
  if ("all" in condition) return condition.all.every((part) => holds(part, evidence));
  if ("any" in condition) return condition.any.some((part) => holds(part, evidence));
  if ("otherwise" in condition) return evidence.isDeclined(condition.otherwise);
  const output = evidence.outputOf(condition.task);
  return output !== null && passes(output, condition.test, evidence.slots);
}

function passes(output: string, test: OutputTest, slots: number): boolean {
  const head = output.slice(0, CONDITION_OUTPUT_CHARS_MAX);
  switch (test.kind) {
    case "equals":
      return output.trim() === test.text.trim();
    case "contains":
      return head.includes(test.text);
    case "matches": {
      const compiled = compilePattern(test.source, test.flags);
      const share = Math.max(PATTERN_ANSWER_STEPS_MIN, Math.floor(PATTERN_GROUP_STEPS_MAX / Math.max(1, slots)));
      return compiled.ok && compiled.pattern.match(head, share).isFound === true;
    }
    case "json": {
      if (output.length > CONDITION_OUTPUT_CHARS_MAX) return false;
      const json = jsonInAnswer(output);
      // Null is no answer to any question, and not different from a value.
      return valueAt(json, test.key) !== null && compared(json, test) === true;
    }
  }
}
