/** Whether a task starts, by the definition of `run_if`: from all that it depends on, which has ended. */
import { namedTasks, type Condition } from "../../src/run/answers/condition.ts";
import { conditionOf, type CompiledTask } from "../../src/run/graph/types.ts";

/** What a dependency ended as: slots that count, those that completed, and whether conditions have skipped all of it. */
export type Seen = { slots: number; completed: number; isUnmet: boolean };

export type View = {
  seen: (position: number) => Seen;
  /** The output of a task, or of the element that it is asked for; null = none. */
  textOf: (position: number) => string | null;
  /** Whether the task's own condition does not hold. */
  isDeclined: (position: number) => boolean;
};

/** Drawn conditions compare outputs with this. */
export const DRAWN_PATTERN = "[0-4]";

export function rulingOf({ runIf = "all_success", dependencies }: CompiledTask, view: View): "runs" | "unmet" | "lost" {
  const condition = conditionOf(runIf);
  const named = condition === null ? [] : namedTasks(condition);
  const others = dependencies.filter((each) => !named.includes(each)).map(view.seen);
  const isLost = ({ slots, completed, isUnmet }: Seen): boolean => !isUnmet && completed < slots;
  const otherwise = others.some(isLost) ? "lost" : "unmet";
  if (condition !== null) {
    if (others.some(isLost) || others.some(({ isUnmet }) => isUnmet)) return otherwise;
    if (meets(condition, view)) return "runs";
    return named.map(view.seen).some(isLost) ? "lost" : "unmet";
  }
  const isWhole = others.every((each) => !each.isUnmet && !isLost(each));
  if (runIf === "always" || isWhole) return "runs";
  if (runIf === "all_success") return otherwise;
  const counted = others.filter(({ isUnmet }) => !isUnmet);
  const all = counted.reduce((sum, { slots }) => sum + slots, 0);
  const done = counted.reduce((sum, { completed }) => sum + completed, 0);
  if (runIf === "any") return done > 0 ? "runs" : otherwise;
  const share = typeof runIf === "object" && "atLeast" in runIf ? runIf.atLeast : 1;
  return all > 0 && done >= share * all ? "runs" : otherwise;
}

function meets(condition: Condition, view: View): boolean {
  if ("all" in condition) return condition.all.every((part) => meets(part, view));
  if ("any" in condition) return condition.any.some((part) => meets(part, view));
  if ("otherwise" in condition) return view.isDeclined(condition.otherwise);
  return new RegExp(DRAWN_PATTERN).test(view.textOf(condition.task) ?? "");
}
