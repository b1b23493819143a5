/** What every answer made under a run carries, whether it succeeds or fails: the run's id and what is left of its budget. */
import type { MiddlewareHandler } from "hono";
import { usdOf } from "../budget/money.ts";
import type { AppEnv } from "../context.ts";

/** What stands before every handler that acts for someone: who asks, and the headers of what is answered. */
export type Protection = readonly [MiddlewareHandler<AppEnv>, MiddlewareHandler<AppEnv>];

/** Budget header: USD as a decimal number, `Infinity` for a run without a USD limit (floats parse it in most languages). */
export function remainingUsdText(remainingNanoUsd: number | null): string {
  return remainingNanoUsd === null ? "Infinity" : String(usdOf(remainingNanoUsd));
}

/** Sets `x-fanout-run` and `x-fanout-budget-remaining-usd`; the latter once the run object has told it. */
export function underRun(): MiddlewareHandler<AppEnv> {
  return async function underRun(c, next) {
    await next();
    const principal = c.get("principal");
    const runId = principal?.kind === "run" ? principal.runId : c.req.header("x-fanout-run");
    if (runId === undefined || c.res.headers.has("x-fanout-run")) return;
    c.res.headers.set("x-fanout-run", runId);
    const remaining = c.get("remainingNanoUsd");
    if (remaining !== undefined) c.res.headers.set("x-fanout-budget-remaining-usd", remainingUsdText(remaining));
  };
}
