/** Budgets of thoughts, which providers document to be below the cap of the completion. */
import type { UnreservableField } from "../../../call.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../limits.ts";
import { numberOf, valueAtPath, type JsonObject } from "../../../text/json/scan.ts";
import { SPENDS_COMPLETION } from "./field-table.ts";

/** A budget that a request names; NaN tokens = what it names is no number. */
export type ThinkingBudget = { field: string; tokens: number };

/** Anthropic's field, and OpenRouter's. */
const BUDGETS = [
  ["thinking", "budget_tokens"],
  ["reasoning", "max_tokens"],
] as const;

/** The budgets that a request names. */
export function thinkingBudgets(bytes: Uint8Array, object: JsonObject): ThinkingBudget[] {
  return BUDGETS.flatMap(([holder, name]) => {
    const budget = valueAtPath(bytes, object, [holder, name]);
    if (budget === null || budget.kind === "null") return [];
    return [{ field: `${holder}.${name}`, tokens: budget.kind === "number" ? numberOf(bytes, budget) : Number.NaN }];
  });
}

/**
 * The entries of budgets that the cap does not bound: thoughts up to such a budget may be billed beyond the cap. `maxTokens`
 * null = the default cap. `fieldOf` names a field from the root of the request.
 */
export function unboundedThoughts(
  budgets: readonly ThinkingBudget[],
  maxTokens: number | null,
  fieldOf: (field: string) => string = (field) => field,
): UnreservableField[] {
  const cap = maxTokens ?? COMPLETION_TOKENS_DEFAULT;
  const why = `Thoughts up to this budget may be billed beyond the cap of the completion; expected less than ${cap}.`;
  return budgets
    .filter(({ tokens }) => !(tokens < cap))
    .map(({ field }) => ({ field: fieldOf(field), why, spends: SPENDS_COMPLETION, allowedBy: field }));
}
