/** What every answer made under a run carries, whether it succeeds or fails: the run's id and what is left of its budget. */
import type { Context, MiddlewareHandler } from "hono";
import { runOf } from "../../durable-objects/address.ts";
import { limitNanoUsd, usdOf } from "../budget/money.ts";
import type { AppEnv } from "../context.ts";

/** What stands before every handler that acts for someone: who asks, and the headers of what is answered. */
export type Protection = readonly [MiddlewareHandler<AppEnv>, MiddlewareHandler<AppEnv>];

/** Budget header: USD as a decimal number, `Infinity` for a run without a USD limit (floats parse it in most languages). */
export function remainingUsdText(remainingNanoUsd: number | null): string {
  if (remainingNanoUsd === null) return "Infinity";
  // As a number's own text, 50 nano-USD would be 5e-8, which shells cannot calculate with.
  return usdOf(remainingNanoUsd)
    .toFixed(9)
    .replace(/\.?0+$/, "");
}

/** Sets `x-fanout-run` and `x-fanout-budget-remaining-usd`; asks the run object where the handler has not done so. */
export function underRun(): MiddlewareHandler<AppEnv> {
  return async function underRun(c, next) {
    await next();
    const principal = c.get("principal");
    const runId = principal?.kind === "run" ? principal.runId : c.req.header("x-fanout-run");
    if (runId === undefined || c.res.headers.has("x-fanout-run")) return;
    const told = c.get("remainingNanoUsd");
    const remaining = told === undefined ? await remainingOf(c, runId) : told;
    if (remaining === undefined) return;
    c.res.headers.set("x-fanout-run", runId);
    c.res.headers.set("x-fanout-budget-remaining-usd", remainingUsdText(remaining));
  };
}

/** Undefined where there is no such run, or its object cannot say. */
async function remainingOf(c: Context<AppEnv>, runId: string): Promise<number | null | undefined> {
  try {
    const budget = await runOf(c.env, runId).budget();
    if (budget === null) return undefined;
    return budget.usd.remaining === null ? null : limitNanoUsd(budget.usd.remaining);
  } catch {
    // The answer stands without this figure; what broke the object is told by those who need it.
    return undefined;
  }
}
