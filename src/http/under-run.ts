/** What every answer made under a run carries, whether it succeeds or fails: the run's id, what is left of its budget and its trace. */
import type { Context } from "hono";
import { limitNanoUsd, usdOf } from "../run/money/money.ts";
import type { AppEnv } from "./context.ts";
import type { BudgetDocument } from "../contract/runs.ts";
import { usdText } from "../errors.ts";
import { RunCaller } from "../objects/clients/caller.ts";
import { settled } from "../objects/clients/settlements.ts";
import { nameTrace } from "./trace-header.ts";

/** Budget header: USD as a decimal number, `Infinity` for a run without a USD limit (floats parse it in most languages). */
export function remainingUsdText(remainingNanoUsd: number | null): string {
  return remainingNanoUsd === null ? "Infinity" : usdText(usdOf(remainingNanoUsd));
}

/**
 * Sets `x-fanout-run`, `x-fanout-budget-remaining-usd` and `x-fanout-trace` on the answer; requests the budget's figure from the run
 * object if the handler has not.
 */
export async function nameRun(c: Context<AppEnv>): Promise<void> {
  await nameTrace(c);
  if (c.get("isNamed")) return;
  const principal = c.get("principal");
  const runId = principal.kind === "run" ? principal.runId : c.req.header("x-fanout-run");
  if (runId === undefined || c.res.headers.has("x-fanout-run")) return;
  const known = c.get("remainingNanoUsd");
  const remaining = known === undefined ? await remainingOf(c, runId) : known;
  if (remaining === undefined) return;
  c.res.headers.set("x-fanout-run", runId);
  c.res.headers.set("x-fanout-budget-remaining-usd", remainingUsdText(remaining));
}

/** Undefined if the run does not exist or its object fails. */
async function remainingOf(c: Context<AppEnv>, runId: string): Promise<number | null | undefined> {
  try {
    await settled(c.env, runId);
    const budget = await new RunCaller(c.env, runId).callOnce<BudgetDocument | null>((run) => run.budget());
    if (budget === null) return undefined;
    return budget.usd.remaining === null ? null : limitNanoUsd(budget.usd.remaining);
  } catch {
    // The answer is valid without this figure; requests that need the object report its failure.
    return undefined;
  }
}
