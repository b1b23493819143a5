/** The run document and the budget document, from the engine's state. */
import { DIMENSIONS, type Ledger } from "../../src/budget/ledger.ts";
import type { Dimension } from "../../src/errors.ts";
import { usdOf } from "../../src/budget/money.ts";
import type { BudgetDocument, RunDocument } from "../../src/contract/runs.ts";
import { round } from "../../src/engine/group.ts";
import { totalsOf } from "./base.ts";
import type { RunCore } from "./core.ts";

/** Four numbers per dimension. `remaining` is never shown below zero, even after an upstream overcharged. */
export function budgetDocumentOf(ledger: Ledger): BudgetDocument {
  const line = (dimension: (typeof DIMENSIONS)[number]) => {
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
    usd: line("usd"),
    calls: line("calls"),
    prompt_tokens: line("prompt_tokens"),
    completion_tokens: line("completion_tokens"),
  };
}

/** The run document with its metadata still as the text it is stored as. */
export type StoredDocument = Omit<RunDocument, "metadata"> & { metadataJson: string };

/** The run as clients see it. */
export function runDocumentOf(core: RunCore, nowMs: number): StoredDocument {
  const { settings, state, groupCounts: counts } = core;
  const totals = totalsOf(core);
  const base = core.base.of("stats");
  const since = (name: "busyMs" | "sequentialMs" | "completed" | "failed" | "attempts" | "retries"): number =>
    totals[name] - base.totals[name];
  const totalQueries = totals.singleCalls + counts.slots - base.totals.singleCalls - base.groups.slots;
  const parallelQueries =
    totals.groupedCalls + counts.parallelSlots - base.totals.groupedCalls - base.groups.parallelSlots;
  const parallelGroups =
    totals.windowGroups + counts.parallelGroups - base.totals.windowGroups - base.groups.parallelGroups;
  const ended = since("completed") + since("failed");
  return {
    id: settings.id,
    object: "run",
    name: settings.name,
    status: core.statusAt(nowMs),
    parent_id: settings.parentId,
    depth: settings.depth,
    created_at: new Date(settings.createdAtMs).toISOString(),
    expires_at: new Date(settings.expiresAtMs).toISOString(),
    budget: budgetDocumentOf(state.ledger),
    max_parallel: settings.maxParallel,
    effective_parallel: state.width,
    stats: {
      total_queries: totalQueries,
      parallel_batches: parallelGroups,
      sequential_queries: totalQueries - parallelQueries,
      total_parallel_queries: parallelQueries,
      pending_queries: state.queue.readyCount + state.queue.delayedCount + state.attempts.size,
    },
    metrics: {
      wall_ms: since("busyMs"),
      sequential_ms: since("sequentialMs"),
      speedup: since("busyMs") === 0 ? null : round(since("sequentialMs") / since("busyMs")),
      peak_parallel: totals.peakParallel,
      success_rate: ended === 0 ? null : round(since("completed") / ended),
      attempts: since("attempts"),
      retries: since("retries"),
    },
    tools: settings.tools.map(({ name, description, idempotent, timeoutMs: timeout_ms, url }) => {
      return { name, description, idempotent, timeout_ms, url };
    }),
    metadataJson: settings.metadataJson,
  };
}

/** A run's own part of its subtree's figures. */
export type Figures = { openChildren: string[]; spent: Record<Dimension, number>; inFlight: Record<Dimension, number> };

export function figuresOf({ children, state: { ledger } }: RunCore): Figures {
  const spent = { ...ledger.spent, usd: usdOf(ledger.spent.usd) };
  const inFlight = { ...ledger.reserved };
  for (const dimension of DIMENSIONS) inFlight[dimension] -= ledger.held[dimension];
  return { openChildren: children.open, spent, inFlight: { ...inFlight, usd: usdOf(inFlight.usd) } };
}
