/** The run document and the budget document, from the run's state. */
import { DIMENSIONS, type Ledger } from "../../src/run/money/ledger.ts";
import { usdOf } from "../../src/run/money/money.ts";
import type { Notify } from "../../src/call.ts";
import type { BlockedKey, BudgetDocument, RunDocument } from "../../src/contract/runs.ts";
import { round } from "../../src/run/group/group.ts";
import { blockedGates, type Blocked } from "../../src/run/steps/blocked.ts";
import type { Figures, StoredDocument, StoredTool } from "../../src/objects/methods/runs.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { gatePartsOf } from "../../src/providers/config/keys.ts";
import type { Totals } from "../../src/run/measures/totals.ts";
import { clientTraceId } from "../../src/trace-context.ts";
import { timesSince } from "./store/counters.ts";
import type { RunState } from "./state.ts";
import type { Children } from "./memory/children.ts";

/** Four numbers per dimension. `remaining` is never shown below zero, even after an upstream overcharged. */
export function budgetDocumentOf(ledger: Ledger): BudgetDocument {
  const amountsOf = (dimension: (typeof DIMENSIONS)[number]) => {
    const shown = (amount: number): number => (dimension === "usd" ? usdOf(amount) : amount);
    const limit = ledger.limits[dimension];
    const remaining = ledger.remaining(dimension);
    return {
      limit: limit === null ? null : shown(limit),
      spent: shown(ledger.spent[dimension]),
      reserved: shown(ledger.reserved[dimension]),
      remaining: remaining === null ? null : shown(Math.max(0, remaining)),
    };
  };
  return {
    usd: amountsOf("usd"),
    calls: amountsOf("calls"),
    prompt_tokens: amountsOf("prompt_tokens"),
    completion_tokens: amountsOf("completion_tokens"),
    new_tokens: amountsOf("new_tokens"),
  };
}

/** What of a run its document shows. */
type Documented = Pick<RunState, "settings" | "statusAt" | "engine" | "counters" | "children">;

/** The run as clients see it. */
export function runDocumentOf(run: Documented, nowMs: number): StoredDocument {
  const { settings, engine } = run;
  const { totals, groups, statsBaseline: base } = run.counters;
  const since = (name: "busyMs" | "sequentialMs" | "completed" | "failed" | "attempts" | "retries"): number =>
    totals[name] - base.totals[name];
  const totalQueries = totals.singleCalls + groups.slots - base.totals.singleCalls - base.groups.slots;
  const parallelQueries =
    totals.groupedCalls + groups.parallelSlots - base.totals.groupedCalls - base.groups.parallelSlots;
  const parallelGroups =
    totals.windowGroups + groups.parallelGroups - base.totals.windowGroups - base.groups.parallelGroups;
  const ended = since("completed") + since("failed");
  const traceId = clientTraceId(settings.trace);
  return {
    id: settings.id,
    object: "run",
    name: settings.name,
    status: run.statusAt(nowMs),
    parent_id: settings.parentId,
    depth: settings.depth,
    created_at: new Date(settings.createdAtMs).toISOString(),
    expires_at: new Date(settings.expiresAtMs).toISOString(),
    budget: budgetDocumentOf(engine.ledger),
    max_parallel: settings.maxParallel,
    effective_parallel: engine.width,
    weight: settings.weight,
    blocked: shownBlocked(blockedGates(engine)),
    in_flight: engine.attempts.size,
    own_spent_usd: usdOf(totals.spent.usd),
    children: { opened: run.children.count, open: run.children.openCount },
    last_call_at: totals.lastCallMs === undefined ? null : new Date(totals.lastCallMs).toISOString(),
    stats: {
      total_queries: totalQueries,
      parallel_batches: parallelGroups,
      sequential_queries: totalQueries - parallelQueries,
      total_parallel_queries: parallelQueries,
      pending_queries:
        engine.queue.readyCount + engine.queue.delayedCount + engine.singleFlight.waiting + engine.attempts.size,
    },
    metrics: {
      wall_ms: since("busyMs"),
      sequential_ms: since("sequentialMs"),
      speedup: since("busyMs") === 0 ? null : round(since("sequentialMs") / since("busyMs")),
      peak_parallel: totals.peakParallel,
      success_rate: ended === 0 ? null : round(since("completed") / ended),
      attempts: since("attempts"),
      retries: since("retries"),
      failures: failuresSince(totals.failures, base.totals.failures),
      ...timesSince(totals, base.totals),
    },
    region: settings.region,
    replay: settings.replay === undefined ? null : "run",
    replay_from: settings.replay?.from ?? null,
    webhook: shownNotify(settings.notify),
    tools: settings.tools.map(storedTool),
    metadataJson: settings.metadataJson,
    ...(traceId === null ? {} : { traceId }),
  };
}

function failuresSince(now: Totals["failures"] = {}, before: Totals["failures"] = {}): Record<string, number> {
  const more = Object.entries(now).map(([code, calls]) => [code, calls - (before[code] ?? 0)] as const);
  return Object.fromEntries(more.filter(([, calls]) => calls > 0));
}

function storedTool({ name, description, parametersJson, idempotent, timeoutMs: timeout_ms, url }: Tool): StoredTool {
  return { name, description, ...(parametersJson !== undefined && { parametersJson }), idempotent, timeout_ms, url };
}

function shownNotify(notify: Notify | undefined): RunDocument["webhook"] {
  if (notify === undefined) return null;
  return { on_end: notify.onEnd === true, on_escalation: notify.onEscalation === true };
}

/** null = calls of the run wait for no stopped key. */
function shownBlocked(gates: readonly Blocked[]): BlockedKey[] | null {
  if (gates.length === 0) return null;
  return gates.map(({ gate, reason, sinceMs }) => {
    const { upstream, key } = gatePartsOf(gate);
    const shownKey = key === undefined ? null : `secret:${key}`;
    return { upstream, key: shownKey, reason, since: new Date(sinceMs).toISOString() };
  });
}

/** What the run itself has spent and has in flight: reservations of open children are not in flight. */
export function figuresOf(children: Pick<Children, "open">, ledger: Ledger): Figures {
  const spent = { ...ledger.spent, usd: usdOf(ledger.spent.usd) };
  const inFlight = { ...ledger.reserved };
  for (const dimension of DIMENSIONS) inFlight[dimension] -= ledger.reservedByChildren[dimension];
  return { openChildren: children.open, spent, inFlight: { ...inFlight, usd: usdOf(inFlight.usd) } };
}
