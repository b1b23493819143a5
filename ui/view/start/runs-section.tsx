/** The root runs as a table that sorts by any column, with filters that are in the page's address. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, type Api } from "../../api.ts";
import { countText } from "../../model/format.ts";
import { textOf } from "../../model/line.ts";
import {
  COLUMNS,
  hasFilters,
  isWanted,
  listQuery,
  noFilters,
  sorted,
  STATUSES,
  type Column,
  type Filters,
  type Sorting,
} from "../../model/runs/filters.ts";
import type { Runs } from "../../watch-runs.ts";
import type { FoundText } from "../../model/runs/text-search.ts";
import { RunRow } from "./run-row.tsx";
import { TextSearchLine } from "./text-search-line.tsx";
import { useTextSearch } from "./use-text-search.ts";

/** Rows that are drawn at first, and with each further step: a browser lays out so many at once without a pause. */
const ROWS_STEP = 100;
/** A reader who types gets the gateway's answer once the text has rested, ms. */
const REST_MS = 300;
const LIST_PAGE = 100;

const HEADS: Readonly<Record<Column, string>> = {
  name: "run",
  state: "state",
  last_call: "last call",
  calls: "calls",
  failed: "failed",
  spent: "spent",
  limit: "budget",
  opened: "opened",
};
const SHOWN: readonly Column[] = ["name", "state", "last_call", "calls", "failed", "spent", "limit", "opened"];
const NUMBERS: ReadonlySet<Column> = new Set(["calls", "failed", "spent", "limit"]);

const NOTHING_FOUND: ReadonlyMap<string, FoundText | null> = new Map();

type Show = (filters: Filters, sorting: Sorting) => void;
type Props = {
  api: Api;
  watched: Runs;
  view: { filters: Filters; sorting: Sorting };
  show: Show;
  nowMs: number;
};

export function RunsSection({ api, watched, view, show, nowMs }: Props) {
  const { filters, sorting } = view;
  const drawn = useSignal(ROWS_STEP);
  useOlderRuns(watched, filters);
  const searching = useTextSearch(watched, filters);
  const found: ReadonlyMap<string, FoundText | null> = searching.search?.found ?? NOTHING_FOUND;
  const all = [...watched.runs.value.values()];
  const wanted = sorted(
    all.filter((run) => isWanted(run, filters, found)),
    sorting,
  );
  const isLoaded = watched.isLoaded.value;
  return (
    <section aria-label="Runs" aria-busy={!isLoaded}>
      <div class="heading">
        <h2>Runs</h2>
        <span class="dim" role="status">
          {isLoaded && countsText(wanted.length, all.length, watched.hasMore.value)}
        </span>
      </div>
      <FilterForm filters={filters} sorting={sorting} show={show} />
      <TextSearchLine {...searching} />
      <table class="runs">
        <thead>
          <tr>
            {SHOWN.map((column) => (
              <Head key={column} column={column} sorting={sorting} sort={(next) => show(filters, next)} />
            ))}
          </tr>
        </thead>
        <tbody>
          {wanted.slice(0, drawn.value).map((run) => (
            <RunRow
              key={run.id}
              api={api}
              run={run}
              depth={0}
              nowMs={nowMs}
              found={found.get(run.id) ?? null}
              text={filters.text}
            />
          ))}
          {!isLoaded && watched.problem.value === null && (
            <tr class="loading">
              <td colSpan={SHOWN.length}>Loading runs …</td>
            </tr>
          )}
        </tbody>
      </table>
      {isLoaded && wanted.length === 0 && (
        <Nothing
          filters={filters}
          isSearched={!searching.isBusy && (searching.search?.cursor ?? null) === null}
          clear={() => show(noFilters(), sorting)}
        />
      )}
      <p class="tools">
        {wanted.length > drawn.value && (
          <button type="button" onClick={() => void (drawn.value += ROWS_STEP)}>
            Show {Math.min(ROWS_STEP, wanted.length - drawn.value)} more
          </button>
        )}
        {watched.hasMore.value && wanted.length <= drawn.value && (
          <button type="button" onClick={() => void watched.more().catch(() => undefined)}>
            Load older runs
          </button>
        )}
      </p>
    </section>
  );
}

function countsText(shown: number, known: number, hasMore: boolean): string {
  const all = `${countText(known)}${hasMore ? " newest" : ""}`;
  return shown === known ? all : `${countText(shown)} of ${all}`;
}

/** `isSearched`: there is nothing more to search in. */
type NothingProps = { filters: Filters; isSearched: boolean; clear: () => void };

function Nothing({ filters, isSearched, clear }: NothingProps) {
  if (!hasFilters(filters)) {
    return (
      <p class="dim">
        No run was opened yet. <code>eval "$(npm run -s token)"</code> opens one; <a href="/docs">the reference</a>{" "}
        begins with a first call.
      </p>
    );
  }
  return (
    <p class="dim">
      {isSearched ? "No such runs." : "No such runs so far."}{" "}
      <button type="button" onClick={clear}>
        Show all
      </button>
    </p>
  );
}

/** Filters look at older runs, too: the gateway applies those that it knows. */
function useOlderRuns(watched: Runs, filters: Filters): void {
  const query = listQuery(filters);
  useEffect(() => {
    if (query === "") return;
    let isGone = false;
    const look = async (): Promise<void> => {
      const page = await watched.read(`view=summary&limit=${LIST_PAGE}&${query}`);
      const cursor = textOf(page, "next_cursor");
      // A page with filters visits some hundred runs: one further page reaches runs that are not loaded.
      if (!isGone && cursor !== null) {
        await watched.read(`view=summary&limit=${LIST_PAGE}&${query}&cursor=${encodeURIComponent(cursor)}`);
      }
    };
    const due = setTimeout(() => {
      look().catch((error: unknown) => {
        if (!isGone) watched.problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
      });
    }, REST_MS);
    return () => {
      isGone = true;
      clearTimeout(due);
    };
  }, [query]);
}

function Head({ column, sorting, sort }: { column: Column; sorting: Sorting; sort: (next: Sorting) => void }) {
  const isSorted = sorting.column === column;
  const isDescending = isSorted ? !sorting.isDescending : NUMBERS.has(column) || column.endsWith("opened");
  return (
    <th
      class={NUMBERS.has(column) ? "number" : ""}
      aria-sort={isSorted ? (sorting.isDescending ? "descending" : "ascending") : "none"}
    >
      <button type="button" onClick={() => sort({ column, isDescending })}>
        {HEADS[column]}
        {isSorted && <span aria-hidden="true">{sorting.isDescending ? " ↓" : " ↑"}</span>}
      </button>
    </th>
  );
}

function FilterForm({ filters, sorting, show }: { filters: Filters; sorting: Sorting; show: Show }) {
  const set = (name: keyof Filters) => (event: { currentTarget: { value: string } }) =>
    show({ ...filters, [name]: event.currentTarget.value }, sorting);
  const hasMore = filters.openedAfter + filters.openedBefore + filters.spentMin + filters.spentMax !== "";
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Name, prompt, answer or error"
        placeholder="Search names, prompts, answers, errors"
        maxLength={128}
        value={filters.text}
        onInput={set("text")}
      />
      <select aria-label="State" value={filters.state} onChange={set("state")}>
        <option value="">any state</option>
        <option value="working">working</option>
        <option value="idle">idle</option>
        <option value="failed">with failed calls</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {status}
          </option>
        ))}
      </select>
      <select
        class="narrow"
        aria-label="Sort by"
        value={`${sorting.isDescending ? "-" : ""}${sorting.column}`}
        onChange={({ currentTarget: { value } }) => {
          const column = COLUMNS.find((each) => each === value.replace("-", ""));
          if (column !== undefined) show(filters, { column, isDescending: value.startsWith("-") });
        }}
      >
        {COLUMNS.flatMap((column) => [
          <option key={`-${column}`} value={`-${column}`}>
            {HEADS[column]} ↓
          </option>,
          <option key={column} value={column}>
            {HEADS[column]} ↑
          </option>,
        ])}
      </select>
      <details open={hasMore}>
        <summary>More filters</summary>
        <div>
          <label>
            opened after <input type="datetime-local" value={filters.openedAfter} onChange={set("openedAfter")} />
          </label>
          <label>
            before <input type="datetime-local" value={filters.openedBefore} onChange={set("openedBefore")} />
          </label>
          <label>
            spent from $ <input type="number" min="0" step="any" value={filters.spentMin} onInput={set("spentMin")} />
          </label>
          <label>
            to $ <input type="number" min="0" step="any" value={filters.spentMax} onInput={set("spentMax")} />
          </label>
        </div>
      </details>
    </form>
  );
}
