/** A run as the start page lists it, from its summary or its document, whichever is newer. */
import type { Json } from "../../api.ts";
import { isRecord, numberOf, objectOf, textOf } from "../line.ts";

/** `null`: not known. */
export type ListedRun = {
  id: string;
  name: string | null;
  status: string;
  createdMs: number;
  lastCallMs: number | null;
  /** Calls that the run was given, and attempts in flight, and calls in the queue. */
  calls: number;
  inFlight: number;
  queued: number;
  failed: number;
  failures: Readonly<Record<string, number>>;
  spentUsd: number;
  /** Of its own calls, without those of child runs. */
  ownUsd: number | null;
  limitUsd: number | null;
  children: number;
  openChildren: number;
  /** When these figures were true. */
  knownMs: number;
  /** Why the list could not read it; null = it could. */
  problem: string | null;
};

/** Reads an entry of `GET /runs`; `nowMs`: when a document was read, which says no time itself. */
export function readListed(json: Json, nowMs: number): ListedRun | null {
  const id = textOf(json, "id");
  if (id === null) return null;
  const [budget, stats, metrics] = [objectOf(json, "budget"), objectOf(json, "stats"), objectOf(json, "metrics")];
  const usd = objectOf(budget, "usd");
  const failures = countsIn(metrics["failures"]);
  const [inFlight, pending] = [numberOf(json, "in_flight"), numberOf(stats, "pending_queries")];
  const children = objectOf(json, "children");
  return {
    id,
    name: textOf(json, "name"),
    status: textOf(json, "status") ?? textOf(json, "code") ?? "unknown",
    createdMs: timeOf(json, "created_at") ?? 0,
    lastCallMs: timeOf(json, "last_call_at"),
    calls: numberOf(stats, "total_queries"),
    inFlight,
    queued: Math.max(0, pending - inFlight),
    failed: Object.values(failures).reduce((sum, calls) => sum + calls, 0),
    failures,
    spentUsd: numberOf(usd, "spent"),
    ownUsd: typeof json["own_spent_usd"] === "number" ? json["own_spent_usd"] : null,
    limitUsd: typeof usd["limit"] === "number" ? usd["limit"] : null,
    children: numberOf(children, "opened"),
    openChildren: numberOf(children, "open"),
    knownMs: timeOf(json, "updated_at") ?? nowMs,
    problem: textOf(json, "code") === null ? null : textOf(json, "message"),
  };
}

/** The entries of a page of a list, those that could not be read included. */
export function readPage(page: Json, nowMs: number): ListedRun[] {
  const entries = [page["data"], page["unread"]].flatMap((list) => (Array.isArray(list) ? list : []));
  return entries.flatMap((entry) => (isRecord(entry) ? (readListed(entry, nowMs) ?? []) : []));
}

/** A page of documents has been read now, but a summary that a run sent later is newer. */
export function newer(known: ListedRun | undefined, read: ListedRun): ListedRun {
  return known !== undefined && known.knownMs > read.knownMs ? known : read;
}

export type Activity = "working" | "idle" | "ended";

const TAKES_CALLS: ReadonlySet<string> = new Set(["active", "paused", "escalated"]);

export function activityOf({ status, inFlight, queued }: ListedRun): Activity {
  if (inFlight + queued > 0) return "working";
  return TAKES_CALLS.has(status) ? "idle" : "ended";
}

function countsIn(value: unknown): Record<string, number> {
  const entries = isRecord(value) ? Object.entries(value) : [];
  return Object.fromEntries(entries.flatMap(([name, count]) => (typeof count === "number" ? [[name, count]] : [])));
}

function timeOf(json: Json, name: string): number | null {
  const ms = Date.parse(textOf(json, name) ?? "");
  return Number.isNaN(ms) ? null : ms;
}
