/** Changing a run's limits, width or pause: its own object, and whoever holds its budget, must agree. */
import { directoryOf, runOf, type Objects } from "../../durable-objects/address.ts";
import type { StoredDocument } from "../../durable-objects/run/document.ts";
import { holdOf } from "../budget/hold.ts";
import { DIMENSIONS, type Limits } from "../budget/ledger.ts";
import { limitNanoUsd, usdOf } from "../budget/money.ts";
import type { BudgetDocument, RunPatchRequest } from "../contract/runs.ts";
import type { BudgetRules } from "../env.ts";
import { Refusal, type Dimension, type Reason } from "../errors.ts";
import { rootLimitNanoUsd } from "./run-request.ts";

/** Applies a patch to the run of `current`. What its holder sets aside rises before the limits do, and falls after them. */
export async function patchRun(
  objects: Objects,
  rules: BudgetRules,
  current: StoredDocument,
  request: RunPatchRequest,
): Promise<StoredDocument> {
  const before = limitsShown(current);
  const after: Limits = { ...before, ...wanted(request) };
  if (current.parent_id === null) after.usd = rootLimitNanoUsd(after.usd, rules);
  const isSame = DIMENSIONS.every((dimension) => after[dimension] === before[dimension]);
  const resize = async (limits: Limits): Promise<void> => {
    if (!isSame) await resizeHold(objects, rules, current, limits);
  };
  await resize(larger(before, after));
  const patched = await runOf(objects, current.id).patch({
    limits: after,
    maxParallel: request.max_parallel ?? null,
    paused: request.paused ?? null,
  });
  if (patched === null) throw new Refusal({ reason: "not_found", what: `run ${current.id}` });
  await resize(patched.ok ? after : before);
  if (!patched.ok) throw new Refusal(patched.reason);
  return patched.document;
}

/** What a run's holder sets aside for it becomes what `limits` need; refused where it has less left. */
async function resizeHold(objects: Objects, rules: BudgetRules, run: StoredDocument, limits: Limits): Promise<void> {
  const hold = holdOf(limits);
  if (run.parent_id !== null) {
    const parent = runOf(objects, run.parent_id);
    if (await parent.resizeChild(run.id, hold)) return;
    throw new Refusal(doesNotFit(run, limits, await parent.budget()));
  }
  if (rules.rootNanoUsdPerDay === null) return;
  if (await directoryOf(objects).resizeChild(run.id, hold.usd, rules.rootNanoUsdPerDay)) return;
  throw new Refusal(doesNotFit(run, limits, null));
}

/** The refusal when the parent, or the day (null), has less left than the new limits need: it tells the holder's figures. */
function doesNotFit(run: StoredDocument, limits: Limits, parent: BudgetDocument | null): Reason {
  const before = limitsShown(run);
  const shown = (dimension: Dimension, amount: number): number => (dimension === "usd" ? usdOf(amount) : amount);
  const short = DIMENSIONS.find((dimension) => {
    const more = shown(dimension, (limits[dimension] ?? 0) - (before[dimension] ?? 0));
    return more > (parent?.[dimension].remaining ?? Infinity);
  });
  const dimension = short ?? "usd";
  const { limit, spent, reserved, remaining } = (parent ?? run.budget)[dimension];
  const facts = { limit: limit ?? 0, spent, reserved, remaining: remaining ?? 0 };
  const needed = shown(dimension, limits[dimension] ?? 0);
  return { reason: "budget_exhausted", dimension, ...facts, needed, param: `budget.${dimension}` };
}

function limitsShown({ budget }: StoredDocument): Limits {
  return {
    usd: budget.usd.limit === null ? null : limitNanoUsd(budget.usd.limit),
    calls: budget.calls.limit,
    prompt_tokens: budget.prompt_tokens.limit,
    completion_tokens: budget.completion_tokens.limit,
  };
}

function wanted({ budget }: RunPatchRequest): Partial<Limits> {
  const limits: Partial<Limits> = {};
  for (const dimension of DIMENSIONS) {
    const limit = budget?.[dimension];
    if (limit !== undefined) limits[dimension] = dimension === "usd" ? limitNanoUsd(limit) : limit;
  }
  return limits;
}

function larger(a: Limits, b: Limits): Limits {
  const limits = { ...a };
  for (const dimension of DIMENSIONS) limits[dimension] = Math.max(a[dimension] ?? 0, b[dimension] ?? 0);
  return limits;
}
