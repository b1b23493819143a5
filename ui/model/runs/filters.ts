/** Which runs the start page shows, and in which order. Both are in its address, so that a view can be kept and sent. */
import { activityOf, type ListedRun } from "./listed.ts";

export const COLUMNS = ["name", "state", "calls", "failed", "spent", "limit", "opened", "last_call"] as const;
export type Column = (typeof COLUMNS)[number];

export type Sorting = { column: Column; isDescending: boolean };

/** Texts as the reader typed them; empty = no such filter. `state`: `working`, `idle`, `failed`, or a run's status. */
export type Filters = {
  text: string;
  state: string;
  openedAfter: string;
  openedBefore: string;
  spentMin: string;
  spentMax: string;
};

const NAMES: readonly (readonly [keyof Filters, string])[] = [
  ["text", "q"],
  ["state", "state"],
  ["openedAfter", "opened_after"],
  ["openedBefore", "opened_before"],
  ["spentMin", "spent_usd_min"],
  ["spentMax", "spent_usd_max"],
];

export const NEWEST_FIRST: Sorting = { column: "opened", isDescending: true };

export function noFilters(): Filters {
  return { text: "", state: "", openedAfter: "", openedBefore: "", spentMin: "", spentMax: "" };
}

/** Reads the query of an address. What is not a filter is ignored. */
export function viewIn(search: string): { filters: Filters; sorting: Sorting } {
  const query = new URLSearchParams(search);
  const filters = noFilters();
  for (const [field, name] of NAMES) filters[field] = query.get(name) ?? "";
  const [, minus, name] = /^(-?)(\w+)$/.exec(query.get("sort") ?? "") ?? [];
  const column = COLUMNS.find((each) => each === name);
  return { filters, sorting: column === undefined ? NEWEST_FIRST : { column, isDescending: minus === "-" } };
}

/** The query of the address that shows this; empty for the plain start page. */
export function addressOf(filters: Filters, { column, isDescending }: Sorting): string {
  const query = new URLSearchParams();
  for (const [field, name] of NAMES) if (filters[field] !== "") query.set(name, filters[field]);
  if (column !== NEWEST_FIRST.column || isDescending !== NEWEST_FIRST.isDescending)
    query.set("sort", `${isDescending ? "-" : ""}${column}`);
  return query.size === 0 ? "" : `?${query.toString()}`;
}

export function hasFilters(filters: Filters): boolean {
  return NAMES.some(([field]) => filters[field] !== "");
}

/** What of the filters the gateway applies itself, so that runs of later pages are found as well; empty = nothing. */
export function listQuery(filters: Filters): string {
  const query = new URLSearchParams();
  if (filters.text !== "") query.set("name", filters.text);
  if (STATUSES.includes(filters.state)) query.set("status", filters.state);
  for (const [field, name] of NAMES.slice(2)) {
    if (filters[field] === "") continue;
    // A field of a form has the reader's time, and the gateway takes that of the world.
    const text = name.startsWith("opened_") ? isoOf(filters[field]) : filters[field];
    if (text !== null) query.set(name, text);
  }
  return query.toString();
}

/** Statuses of runs, of which the gateway's list knows. */
export const STATUSES = ["active", "paused", "escalated", "closed", "cancelled", "expired"];

/** `found`: runs that have the text in their calls, as far as these were searched. */
export function isWanted(run: ListedRun, filters: Filters, found: { has: (id: string) => boolean } = NONE): boolean {
  const { text, state, openedAfter, openedBefore, spentMin, spentMax } = filters;
  if (text !== "" && !hasText(run, text.toLowerCase()) && !found.has(run.id)) return false;
  if (!isInState(run, state)) return false;
  if (openedAfter !== "" && run.createdMs <= Date.parse(openedAfter)) return false;
  if (openedBefore !== "" && run.createdMs >= Date.parse(openedBefore)) return false;
  if (spentMin !== "" && run.spentUsd < Number(spentMin)) return false;
  return spentMax === "" || run.spentUsd <= Number(spentMax);
}

const NONE: ReadonlySet<string> = new Set();

/** Whether its name, its id or the code of an error of its calls has the text. */
function hasText({ name, id, failures }: ListedRun, text: string): boolean {
  if (name?.toLowerCase().includes(text) === true || id.includes(text)) return true;
  return Object.keys(failures).some((code) => code.includes(text.replaceAll(" ", "_")));
}

function isInState(run: ListedRun, state: string): boolean {
  if (state === "") return true;
  if (state === "failed") return run.failed > 0;
  return state === "working" || state === "idle" ? activityOf(run) === state : run.status === state;
}

/** The runs in this order; equal ones newest first. */
export function sorted(runs: readonly ListedRun[], { column, isDescending }: Sorting): ListedRun[] {
  const sign = isDescending ? -1 : 1;
  return runs.toSorted((a, b) => sign * compare(a, b, column) || b.createdMs - a.createdMs || (a.id < b.id ? 1 : -1));
}

const ORDER = { working: 0, idle: 1, ended: 2 } as const;

function compare(a: ListedRun, b: ListedRun, column: Column): number {
  switch (column) {
    case "name":
      // Runs without a name come last.
      return (a.name ?? "\uffff").localeCompare(b.name ?? "\uffff");
    case "state":
      return ORDER[activityOf(a)] - ORDER[activityOf(b)] || a.status.localeCompare(b.status);
    case "calls":
      return a.calls - b.calls;
    case "failed":
      return a.failed - b.failed;
    case "spent":
      return a.spentUsd - b.spentUsd;
    case "limit":
      return (a.limitUsd ?? Infinity) === (b.limitUsd ?? Infinity)
        ? 0
        : (a.limitUsd ?? Infinity) - (b.limitUsd ?? Infinity);
    case "opened":
      return a.createdMs - b.createdMs;
    case "last_call":
      return (a.lastCallMs ?? 0) - (b.lastCallMs ?? 0);
  }
}

function isoOf(text: string): string | null {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
