/** Changing a run's limits, width or pause: its own object, and whoever holds its budget, must agree. */
import { directoryOf, runOf, type Objects } from "../../durable-objects/address.ts";
import type { StoredDocument } from "../../durable-objects/run/document.ts";
import { holdOf } from "../budget/hold.ts";
import { DIMENSIONS, type Limits } from "../budget/ledger.ts";
import { limitNanoUsd, usdOf } from "../budget/money.ts";
import type { RunPatchRequest } from "../contract/runs.ts";
import type { BudgetRules } from "../env.ts";
import { Refusal, type Reason } from "../errors.ts";
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
  const resize = (limits: Limits): Promise<void> => resizeHold(objects, rules, current, limits);
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

async function resizeHold(objects: Objects, rules: BudgetRules, run: StoredDocument, limits: Limits): Promise<void> {
  if (DIMENSIONS.every((dimension) => limits[dimension] === limitsShown(run)[dimension])) return;
  const hold = holdOf(limits);
  if (run.parent_id !== null) {
    if (!(await runOf(objects, run.parent_id).resizeChild(run.id, hold))) throw new Refusal(doesNotFit(run, limits));
  } else if (rules.rootNanoUsdPerDay !== null) {
    const fits = await directoryOf(objects).resizeChild(run.id, hold.usd, rules.rootNanoUsdPerDay);
    if (!fits) throw new Refusal(doesNotFit(run, limits));
  }
}

/** The refusal when the parent, or the day, has less left than the new limits need. */
function doesNotFit(run: StoredDocument, limits: Limits): Reason {
  const { limit, spent, reserved, remaining } = run.budget.usd;
  const facts = { limit: limit ?? 0, spent, reserved, remaining: remaining ?? 0 };
  return { reason: "budget_exhausted", dimension: "usd", ...facts, needed: usdOf(limits.usd ?? 0), param: "budget" };
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
