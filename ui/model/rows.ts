/** The lines of the timeline: each group with its calls below it, single calls at the end, in the order of their beginning. */
import type { Call } from "../../src/log/picture/call.ts";
import { nameOf } from "./call.ts";
import { callKey } from "./call-search.ts";
import type { GroupState, RunState } from "./run-state.ts";

export type Row = { kind: "group"; group: GroupState } | { kind: "call"; call: Call };
export const SHOWN = ["all", "failed", "running", "retried", "replayed"] as const;
export type Shown = (typeof SHOWN)[number];

/** Which calls are listed: of a kind, with a text in their name, model or error, and with one cause of failure; null = any. */
export type Wanted = { shown: Shown; text: string; cause: { code: string; upstream: string } | null };

export const ALL_CALLS: Wanted = { shown: "all", text: "", cause: null };

/** What of the calls the address of a run's page asks for. */
export function wantedIn(address: string): Wanted {
  const query = new URLSearchParams(address);
  const shown = SHOWN.find((each) => each === query.get("show")) ?? "all";
  return { ...ALL_CALLS, shown, text: query.get("search") ?? "" };
}

/** The query of the address that asks for this; empty for all calls. A cause of failure is in no address. */
export function addressOfWanted({ shown, text }: Wanted): string {
  const query = new URLSearchParams();
  if (shown !== "all") query.set("show", shown);
  if (text !== "") query.set("search", text);
  return query.size === 0 ? "" : `?${query.toString()}`;
}

/** Browsers lay out no element that is much taller than so many lines; the list of a run with more is cut. */
const ROWS_MAX = 500_000;

/** Calls below their group's line; null = single calls, which have none above them. */
type Section = { group: GroupState | null; calls: readonly Call[] };
type Placed = Section & { first: number; end: number };

/** `found`: calls that have the text in their prompts or answers, by `callKey`. */
export function rowsOf(state: RunState, wanted: Wanted, found: ReadonlySet<string> = NONE): Rows {
  const sections: Section[] = [...state.groups.values(), { group: null, calls: state.single }].map((each) =>
    "group" in each ? each : { group: each, calls: each.calls },
  );
  if (wanted.shown === "all" && wanted.text === "" && wanted.cause === null) return new Rows(sections);
  const some = sections.map(({ group, calls }) => ({
    group,
    calls: calls.filter((call) => isWanted(call, wanted, found)),
  }));
  return new Rows(some.filter(({ calls }) => calls.length > 0));
}

/** How many of the calls that were found have no line: those that wait for their turn, of which the log does not know yet. */
export function foundWithoutRow(state: RunState, found: ReadonlySet<string>): number {
  let missing = found.size;
  if (missing === 0) return 0;
  for (const { id, calls } of state.groups.values())
    for (const { index } of calls) if (index !== null && found.has(callKey(id, index))) missing -= 1;
  return missing;
}

/** Lines that are made when they are looked at: of a long list, few are on the screen, and it grows with each call. */
export class Rows {
  readonly length: number;
  readonly #sections: readonly Placed[];

  constructor(sections: readonly Section[]) {
    let end = 0;
    // The lists go on growing; the lines are those that there are now.
    this.#sections = sections.map(({ group, calls }) => {
      const first = end;
      end += calls.length + (group === null ? 0 : 1);
      return { group, calls, first, end };
    });
    this.length = Math.min(end, ROWS_MAX);
  }

  at(index: number): Row | null {
    if (index < 0 || index >= this.length) return null;
    const { group, calls, first } = this.#sectionAt(index);
    const place = index - first - (group === null ? 0 : 1);
    const call = calls[place];
    if (call !== undefined) return { kind: "call", call };
    return group === null ? null : { kind: "group", group };
  }

  /** Where a line is; null = nowhere. */
  indexOf(row: Row): number | null {
    for (const { group, calls, first, end } of this.#sections) {
      if (row.kind === "group") {
        if (group === row.group) return first;
      } else if ((group?.id ?? null) === row.call.group || group === null) {
        const place = calls.indexOf(row.call);
        const index = first + place + (group === null ? 0 : 1);
        if (place >= 0 && index < Math.min(end, this.length)) return index;
      }
    }
    return null;
  }

  #sectionAt(index: number): Placed {
    let [low, high] = [0, this.#sections.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sections[middle]?.end ?? 0) > index) high = middle;
      else low = middle + 1;
    }
    return this.#sections[low] ?? { group: null, calls: [], first: 0, end: 0 };
  }
}

/** Whether two lines show the same thing: a line is made anew whenever it is looked at. */
export function isSameRow(one: Row, other: Row | null): boolean {
  if (one.kind === "call") return other?.kind === "call" && other.call === one.call;
  return other?.kind === "group" && other.group === one.group;
}

const NONE: ReadonlySet<string> = new Set();

function isWanted(call: Call, { shown, text, cause }: Wanted, found: ReadonlySet<string>): boolean {
  if (!isShown(call, shown) || (cause !== null && !isCause(call, cause))) return false;
  if (text === "") return true;
  const { group, index } = call;
  if (group !== null && index !== null && found.has(callKey(group, index))) return true;
  const searched = text.trim().toLowerCase();
  const texts = [nameOf(call), call.attempts.at(-1)?.target, call.model, call.code, call.message];
  return texts.some((each) => each?.toLowerCase().includes(searched) === true);
}

function isCause(call: Call, { code, upstream }: { code: string; upstream: string }): boolean {
  return (
    call.state === "failed" && (call.code ?? "unknown") === code && (call.attempts.at(-1)?.target ?? "") === upstream
  );
}

function isShown(call: Call, shown: Shown): boolean {
  switch (shown) {
    case "all":
      return true;
    case "failed":
      return call.state === "failed";
    case "running":
      return call.endMs === null;
    case "replayed":
      return call.replayed;
    case "retried":
      return call.attempts.length > 1;
  }
}
