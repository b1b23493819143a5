/** Comparisons of a value in the JSON of an answer, as cascades and conditions of graphs name them. */
import type { JsonGate } from "../../call.ts";
import { valueAt } from "./answer-json.ts";

/** Whether the comparison holds; null = there is no such value, or it cannot be compared so. `json`: the whole answer. */
export function compared(json: unknown, { key, operator, value }: JsonGate): boolean | null {
  const found = valueAt(json, key);
  if (found === undefined) return null;
  if (operator === "==") return found === value;
  if (operator === "!=") return found !== value;
  if (typeof found !== "number" || typeof value !== "number") return null;
  if (operator === "<") return found < value;
  if (operator === "<=") return found <= value;
  return operator === ">" ? found > value : found >= value;
}
