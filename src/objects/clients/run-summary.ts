/** Summaries of runs: what the list of root runs itself knows of each, so that a look at the list wakes none. */
import { usdOf } from "../../run/money/money.ts";
import type { RunSettings, RunSummary, StoredDocument } from "../methods/runs.ts";

/** What of a run's document its summary has. `spendByModel`: USD by `upstream/model`; absent = not known. */
export function summaryOf(document: StoredDocument, spendByModel?: Record<string, number>): RunSummary {
  const { id, name, status, created_at, expires_at, budget, stats, metrics, in_flight = null } = document;
  const { last_call_at, own_spent_usd, children } = document;
  const { total_queries, pending_queries } = stats;
  const { attempts, success_rate, failures } = metrics;
  return {
    id,
    object: "run_summary",
    name,
    status,
    created_at,
    expires_at,
    budget: { usd: budget.usd },
    in_flight,
    stats: { total_queries, pending_queries },
    metrics: { attempts, success_rate, ...(failures === undefined ? {} : { failures }) },
    ...(last_call_at === undefined ? {} : { last_call_at }),
    ...(own_spent_usd === undefined ? {} : { own_spent_usd }),
    ...(children === undefined ? {} : { children }),
    ...(spendByModel === undefined ? {} : { spend_by_model: spendByModel }),
  };
}

/** The summary of a run that is being opened. */
export function openingSummary(
  settings: Pick<RunSettings, "id" | "name" | "createdAtMs" | "expiresAtMs" | "limits">,
): RunSummary {
  const limit = settings.limits.usd === null ? null : usdOf(settings.limits.usd);
  return {
    id: settings.id,
    object: "run_summary",
    name: settings.name,
    status: "active",
    created_at: new Date(settings.createdAtMs).toISOString(),
    expires_at: new Date(settings.expiresAtMs).toISOString(),
    budget: { usd: { limit, spent: 0, reserved: 0, remaining: limit } },
    in_flight: 0,
    stats: { total_queries: 0, pending_queries: 0 },
    metrics: { attempts: 0, success_rate: null },
    last_call_at: null,
  };
}
