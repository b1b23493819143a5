/** What all root runs do and have used, added up: first over the rows of one part of the list of runs, then over the parts. */
import { OVERVIEW_HOURS, OVERVIEW_NAMES_MAX } from "../../limits.ts";
import { addUse, hasRate, hourOf, noUse, OTHERS, sum, type HourUse, type Row } from "./history.ts";

/** What runs of one name have used since a time; money is nano-USD. */
export type NameUse = { nanoUsd: number; runs: number; failed: number };

/** Money is nano-USD. */
export type Overview = {
  runs: number;
  working: number;
  inFlight: number;
  queued: number;
  callsPerSecond: number;
  nanoUsdPerMinute: number;
  /** Since the time that the reader names. */
  since: HourUse;
  /** Names of runs, and what those of each name have used since that time; of runs without a name under "". */
  names: Record<string, NameUse>;
  /** By their numbers since 1970: the last OVERVIEW_HOURS in which something was used. */
  hours: Record<string, { nanoUsd: number; calls: number; failed: number }>;
  /** Parts of the list that have more runs than a look visits. */
  partsCut: number;
};

export function noOverview(): Overview {
  const now = { runs: 0, working: 0, inFlight: 0, queued: 0, callsPerSecond: 0, nanoUsdPerMinute: 0 };
  return { ...now, since: noUse(), names: {}, hours: {}, partsCut: 0 };
}

type Times = { nowMs: number; sinceMs: number };

/** Adds a run whose row was written at `atMs`. */
export function addRun(overview: Overview, { reported, history }: Row, atMs: number, { nowMs, sinceMs }: Times): void {
  const isWorking = reported.pending + reported.inFlight > 0;
  overview.runs += 1;
  overview.inFlight += reported.inFlight;
  // What is in flight is pending, too.
  overview.queued += Math.max(0, reported.pending - reported.inFlight);
  if (isWorking) overview.working += 1;
  if (isWorking && history.rate !== null && hasRate(history, nowMs - atMs)) {
    overview.callsPerSecond += (history.rate.calls / history.rate.ms) * 1_000;
    overview.nanoUsdPerMinute += (history.rate.nanoUsd / history.rate.ms) * 60_000;
  }
  const used = noUse();
  for (const [hour, use] of Object.entries(history.hours)) {
    addHour(overview, Number(hour), use, nowMs);
    if (Number(hour) >= hourOf(sinceMs)) addUse(used, use);
  }
  addUse(overview.since, used);
  const failed = sum(used.failures);
  if (used.calls + failed + used.nanoUsd > 0) {
    addName(overview.names, reported.name ?? "", { nanoUsd: used.nanoUsd, runs: 1, failed });
  }
}

/** Adds what runs that are not listed any more have spent in an hour. */
export function addPast(overview: Overview, hour: number, nanoUsd: number, { nowMs, sinceMs }: Times): void {
  const use = { ...noUse(), nanoUsd };
  addHour(overview, hour, use, nowMs);
  if (hour >= hourOf(sinceMs)) addUse(overview.since, use);
}

/** Adds another part's sums. */
export function addOverview(to: Overview, more: Overview): void {
  to.runs += more.runs;
  to.working += more.working;
  to.inFlight += more.inFlight;
  to.queued += more.queued;
  to.callsPerSecond += more.callsPerSecond;
  to.nanoUsdPerMinute += more.nanoUsdPerMinute;
  to.partsCut += more.partsCut;
  addUse(to.since, more.since);
  for (const [name, use] of Object.entries(more.names)) addName(to.names, name, use);
  for (const [hour, { nanoUsd, calls, failed }] of Object.entries(more.hours)) {
    const known = (to.hours[hour] ??= { nanoUsd: 0, calls: 0, failed: 0 });
    known.nanoUsd += nanoUsd;
    known.calls += calls;
    known.failed += failed;
  }
}

function addHour({ hours }: Overview, hour: number, use: HourUse, nowMs: number): void {
  if (hour <= hourOf(nowMs) - OVERVIEW_HOURS) return;
  const known = (hours[hour] ??= { nanoUsd: 0, calls: 0, failed: 0 });
  known.nanoUsd += use.nanoUsd;
  known.calls += use.calls;
  known.failed += sum(use.failures);
}

function addName(names: Record<string, NameUse>, name: string, { nanoUsd, runs, failed }: NameUse): void {
  const isKnown = Object.hasOwn(names, name) || Object.keys(names).length < OVERVIEW_NAMES_MAX;
  const use = (names[isKnown ? name : OTHERS] ??= { nanoUsd: 0, runs: 0, failed: 0 });
  use.nanoUsd += nanoUsd;
  use.runs += runs;
  use.failed += failed;
}
