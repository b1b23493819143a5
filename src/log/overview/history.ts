/**
 * What a root run has used in each hour, derived from the summaries with which it reports how far it is. It is kept in the row of the
 * summary, so that a report writes one row. What lies between two reports counts in the hour of the run's last call.
 */
import { OTHER_MODELS } from "../../run/measures/totals.ts";
import { OVERVIEW_CODES_MAX, OVERVIEW_HOURS, OVERVIEW_MODELS_MAX, OVERVIEW_RATE_MS_MAX } from "../../limits.ts";

/** Money is nano-USD. `models`, `failures`: by `upstream/model`, by code. */
export type HourUse = {
  nanoUsd: number;
  calls: number;
  models: Record<string, number>;
  failures: Record<string, number>;
};

/** Hours by their number since 1970. `rate`: between the last two reports; null = there was one. */
export type History = {
  hours: Record<string, HourUse>;
  rate: { ms: number; calls: number; nanoUsd: number } | null;
};

/** What of a summary counts. `lastCallMs` null = not known. */
export type Reported = {
  name: string | null;
  nanoUsd: number;
  calls: number;
  inFlight: number;
  pending: number;
  models: Readonly<Record<string, number>>;
  failures: Readonly<Record<string, number>>;
  lastCallMs: number | null;
};

/** A stored summary: what its run reported, and the history that its row keeps. */
export type Row = { reported: Reported; history: History };

const KEY = ',"history":';
const HOUR_MS = 3_600_000;

/** The row's text: the summary's own, with its history as the last field. Readers of summaries ignore it. */
export function rowText(summary: string, history: History): string {
  return `${summary.slice(0, -1)}${KEY}${JSON.stringify(history)}}`;
}

/** Whether a row has this summary already. */
export function hasSummary(row: string, summary: string): boolean {
  return row === summary || row.startsWith(summary.slice(0, -1) + KEY);
}

/** Reads a row; null if it is not a summary. That of a run that has just been opened has no history. */
export function readRow(text: string): Row | null {
  const value = objectIn(parsed(text));
  const usd = objectIn(objectIn(value?.["budget"])?.["usd"]);
  if (value === null || usd === null) return null;
  const [stats, metrics] = [objectIn(value["stats"]), objectIn(value["metrics"])];
  const { name, last_call_at } = value;
  const reported = {
    name: typeof name === "string" ? name : null,
    nanoUsd: nanoOf(usd["spent"]),
    calls: numberIn(metrics?.["attempts"]),
    inFlight: numberIn(value["in_flight"]),
    pending: numberIn(stats?.["pending_queries"]),
    models: mapped(value["spend_by_model"], nanoOf),
    failures: mapped(metrics?.["failures"], numberIn),
    lastCallMs: typeof last_call_at === "string" ? Date.parse(last_call_at) : null,
  };
  return { reported, history: historyIn(value["history"]) };
}

/** The history of a run after it has reported `next` at `atMs`; its row was `known`, since `knownMs`; null = it had none. */
export function historyAfter(
  known: Row | null,
  next: Reported,
  { knownMs, atMs }: { knownMs: number; atMs: number },
): History {
  const before = known?.reported ?? null;
  const more = {
    nanoUsd: Math.max(0, next.nanoUsd - (before?.nanoUsd ?? 0)),
    calls: Math.max(0, next.calls - (before?.calls ?? 0)),
    models: grown(next.models, before?.models),
    failures: grown(next.failures, before?.failures),
  };
  const hours = recent(known?.history.hours ?? {}, atMs);
  const hour = String(hourOf(Math.min(next.lastCallMs ?? atMs, atMs)));
  if (more.nanoUsd + more.calls + sum(more.failures) > 0) addUse((hours[hour] ??= noUse()), more);
  const rate = before === null ? null : { ms: Math.max(1, atMs - knownMs), calls: more.calls, nanoUsd: more.nanoUsd };
  return { hours, rate };
}

/** A run that has reported nothing for so long is not shown with a rate. */
export function hasRate({ rate }: History, ageMs: number): boolean {
  return rate !== null && ageMs <= OVERVIEW_RATE_MS_MAX;
}

export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS);
}

export function hourStart(hour: number): Date {
  return new Date(hour * HOUR_MS);
}

export function noUse(): HourUse {
  return { nanoUsd: 0, calls: 0, models: {}, failures: {} };
}

/** Adds what was used to a sum. Models and codes beyond their bounds are counted together. */
export function addUse(to: HourUse, more: HourUse): void {
  to.nanoUsd += more.nanoUsd;
  to.calls += more.calls;
  for (const [model, nanoUsd] of Object.entries(more.models))
    addTo(to.models, model, nanoUsd, OVERVIEW_MODELS_MAX, OTHER_MODELS);
  for (const [code, calls] of Object.entries(more.failures))
    addTo(to.failures, code, calls, OVERVIEW_CODES_MAX, OTHERS);
}

/** Adds an amount under a name; under the name of all others if the map is full. */
function addTo(map: Record<string, number>, name: string, amount: number, max: number, others: string): void {
  const known = Object.hasOwn(map, name) || Object.keys(map).length < max;
  const at = known ? name : others;
  map[at] = (map[at] ?? 0) + amount;
}

/** The name under which names and codes are counted that have no place of their own; for models there is `OTHER_MODELS`. */
export const OTHERS = "(others)";

export function sum(amounts: Readonly<Record<string, number>>): number {
  return Object.values(amounts).reduce((total, amount) => total + amount, 0);
}

/** The hours that are kept. */
function recent(hours: Readonly<Record<string, HourUse>>, nowMs: number): Record<string, HourUse> {
  const first = hourOf(nowMs) - OVERVIEW_HOURS + 1;
  return Object.fromEntries(Object.entries(hours).filter(([hour]) => Number(hour) >= first));
}

function grown(
  now: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>> = {},
): Record<string, number> {
  const more = Object.entries(now).map(([name, amount]) => [name, amount - (before[name] ?? 0)] as const);
  return Object.fromEntries(more.filter(([, amount]) => amount > 0));
}

function historyIn(value: unknown): History {
  const stored = objectIn(value);
  const hours = Object.entries(objectIn(stored?.["hours"]) ?? {}).flatMap(([hour, use]) => {
    const read = objectIn(use);
    if (read === null || !/^\d{1,9}$/.test(hour)) return [];
    const { nanoUsd, calls, models, failures } = read;
    const amounts = { nanoUsd: numberIn(nanoUsd), calls: numberIn(calls) };
    return [[hour, { ...amounts, models: mapped(models, numberIn), failures: mapped(failures, numberIn) }] as const];
  });
  const rate = objectIn(stored?.["rate"]);
  const read =
    rate === null
      ? null
      : { ms: Math.max(1, numberIn(rate["ms"])), calls: numberIn(rate["calls"]), nanoUsd: numberIn(rate["nanoUsd"]) };
  return { hours: Object.fromEntries(hours), rate: read };
}

function mapped(value: unknown, read: (value: unknown) => number): Record<string, number> {
  return Object.fromEntries(Object.entries(objectIn(value) ?? {}).map(([name, amount]) => [name, read(amount)]));
}

function nanoOf(usd: unknown): number {
  return Math.round(numberIn(usd) * 1e9);
}

function numberIn(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function objectIn(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
