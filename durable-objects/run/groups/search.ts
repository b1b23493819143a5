/**
 * Searching in the texts of a run: names, prompts, answers and errors of the calls of its groups, the newest group first, then the
 * errors of single calls, of which the log alone knows. One look reads a bounded number of rows and characters, and the next one goes on
 * behind it. Nothing is written.
 */
import { toWire } from "../../../src/errors.ts";
import { SEARCH_CALLS_MAX, SEARCH_CHARS_MAX } from "../../../src/limits.ts";
import type { SearchReply, SearchRequest, TextMatch } from "../../../src/objects/methods/search.ts";
import { promptTexts } from "../../../src/providers/formats/request/prompt-texts.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { Drained } from "../../../src/run/group/group.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import type { LoggedEvent } from "../../../src/run/log.ts";
import { isCopied, placeOf, readCall } from "../../../src/run/queue/call-page.ts";
import { indexOf, slotIdOf } from "../../../src/run/queue/slot.ts";
import { Needle } from "../../../src/text/needle.ts";
import type { RunState } from "../state.ts";
import type { GroupRecord } from "../store/groups.ts";
import type { StoredPage } from "../store/records.ts";
import type { RunStore } from "../store/store.ts";
import { customIdsOf } from "./custom-ids.ts";
import { absentIn, withGaps } from "./read.ts";

const PLACE = /^(?:g\.(?<seq>\d{1,15})\.(?<index>\d{1,6})|l\.(?<event>\d{1,15}))$/;

/** What of the object is read; `run` null = it was deleted meanwhile. */
type Searched = { readonly run: RunState | null; readonly store: RunStore; flushLog: () => Promise<void> };

/** Null = there is no such run any more. */
export async function searchRun(
  searched: Searched,
  { text, from, matchesMax }: SearchRequest,
): Promise<SearchReply | null> {
  await searched.flushLog();
  const { run, store } = searched;
  if (run === null) return null;
  const search = new Search(run, store, new Needle(text), matchesMax);
  const { seq, index, event } = PLACE.exec(from ?? "")?.groups ?? {};
  const next =
    event === undefined
      ? (search.groups(Number(seq ?? Number.MAX_SAFE_INTEGER), Number(index ?? 0)) ??
        search.log(Number.MAX_SAFE_INTEGER))
      : search.log(Number(event));
  return { ...search.found, next };
}

class Search {
  readonly found: Omit<SearchReply, "next"> = { matches: [], calls: 0, chars: 0, unread: 0 };
  readonly #run: RunState;
  readonly #store: RunStore;
  readonly #needle: Needle;
  readonly #matchesMax: number;

  constructor(run: RunState, store: RunStore, needle: Needle, matchesMax: number) {
    this.#run = run;
    this.#store = store;
    this.#needle = needle;
    this.#matchesMax = matchesMax;
  }

  get #isOver(): boolean {
    const { matches, calls, chars } = this.found;
    return matches.length >= this.#matchesMax || calls >= SEARCH_CALLS_MAX || chars >= SEARCH_CHARS_MAX;
  }

  /** The groups from one on, at a call of it, to the oldest. Returns where it has stopped; null = behind the oldest. */
  groups(fromSeq: number, fromIndex: number): string | null {
    for (const record of this.#store.groups.newest(fromSeq)) {
      const { seq } = record.stored.header;
      if (!record.stored.sealed) continue;
      const stoppedAt = this.#group(record, seq === fromSeq ? fromIndex : 0);
      if (stoppedAt !== null) return `g.${seq}.${stoppedAt}`;
    }
    return null;
  }

  #group({ stored, result }: GroupRecord, fromIndex: number): number | null {
    const { header } = stored;
    const { seq } = header;
    const live = this.#run.engine.groups.get(seq);
    const drained: Drained | null = live?.drained ?? result?.drained ?? null;
    const isAbsent = absentIn(live, result);
    const nameOf = customIdsOf(this.#store.groups, stored);
    const prompts = new Prompts(this.#store, this.#needle, stored);
    for (const record of withGaps(this.#store, { seq, fromIndex, count: header.count, drained })) {
      const index = indexOf(record.id);
      if (this.#isOver) return index;
      if (isAbsent(index)) continue;
      this.found.calls += 1;
      const match = this.#slot(record, nameOf(index), () => prompts.of(index));
      this.found.chars += prompts.takeChars();
      if (match !== null) this.found.matches.push({ ...match, group: header.id, index, callId: null });
    }
    this.found.unread += prompts.unread;
    return null;
  }

  #slot(
    record: SlotRecord,
    name: string | null,
    prompt: () => string | null,
  ): Pick<TextMatch, "where" | "excerpt"> | null {
    const { text, reason } = record;
    const message = reason === null ? null : messageOf(toWire(reason).error);
    this.found.chars += (text?.length ?? 0) + (message?.length ?? 0);
    const excerpt = (each: string | null): string | null => (each === null ? null : this.#needle.excerptOf(each));
    for (const [where, found] of [
      ["name", excerpt(name)],
      ["prompt", prompt()],
      ["answer", excerpt(text)],
      ["error", excerpt(message)],
    ] as const)
      if (found !== null) return { where, excerpt: found };
    return null;
  }

  /** The errors of single calls in the log, from before an event on, newest first. Returns where it has stopped; null = at its beginning. */
  log(before: number): string | null {
    // The log of a run without a failure has none to find.
    const { failures = {} } = this.#run.counters.totals;
    if (Object.keys(failures).length === 0) return null;
    const seen = new Set<string>();
    for (let row = this.#store.log.before(before); row !== null;) {
      if (this.#isOver) return `l.${row.last + 1}`;
      this.found.chars += row.lines.length;
      const lines = row.lines.split("\n");
      for (const line of lines) {
        if (!line.includes('"reason":{') || !line.includes('"callId":"')) continue;
        // Written by this object from its own events.
        const event: LoggedEvent = JSON.parse(line);
        if (!("callId" in event) || !("reason" in event) || event.callId === null || event.reason === null) continue;
        if (seen.has(event.callId)) continue;
        seen.add(event.callId);
        this.found.calls += 1;
        const excerpt = this.#needle.excerptOf(messageOf(toWire(event.reason).error));
        if (excerpt === null) continue;
        this.found.matches.push({ where: "error", group: null, index: null, callId: event.callId, excerpt });
      }
      row = this.#store.log.before(row.last - lines.length + 1);
    }
    return null;
  }
}

/** An error as the page shows it. */
function messageOf({ code, message }: { code: string; message: string }): string {
  return `${code}: ${message}`;
}

/** The prompts of a group, a page at a time. */
class Prompts {
  /** Calls whose prompts are in R2. */
  unread = 0;
  readonly #groups: RunStore["groups"];
  readonly #needle: Needle;
  readonly #stored: GroupRecord["stored"];
  readonly #callOf: (index: number) => number | null;
  /** What all calls share may have it: then no call can be passed over. */
  readonly #mayBeShared: boolean;
  #page: (StoredPage & { lines: readonly string[]; end: number }) | null = null;
  /** The line that was looked at last, and what was found in it: copies of a call, and elements of a task, have one line. */
  #last: { line: string; excerpt: string | null } | null = null;
  #chars = 0;

  constructor({ groups }: Pick<RunStore, "groups">, needle: Needle, stored: GroupRecord["stored"]) {
    this.#groups = groups;
    this.#needle = needle;
    this.#stored = stored;
    const graphJson = stored.header.graph === undefined ? null : groups.graphJson(stored.header.seq);
    this.#chars += graphJson?.length ?? 0;
    this.#callOf = graphJson === null ? (index) => index : callsOf(graphJson);
    this.#mayBeShared = needle.mayBeIn(stored.defaultsJson);
  }

  /** Characters that were read since the last time. */
  takeChars(): number {
    const chars = this.#chars;
    this.#chars = 0;
    return chars;
  }

  /** What surrounds the text in the prompt of a slot; null = it is not in it. */
  of(index: number): string | null {
    const line = this.#lineOf(index);
    if (line === null) return null;
    if (this.#last?.line === line) return this.#last.excerpt;
    const excerpt = this.#excerptIn(line);
    this.#last = { line, excerpt };
    return excerpt;
  }

  #excerptIn(line: string): string | null {
    if (!this.#mayBeShared && !this.#needle.mayBeIn(line)) return null;
    for (const text of promptTexts(readCall(line, this.#stored.defaultsJson))) {
      const excerpt = this.#needle.excerptOf(text);
      if (excerpt !== null) return excerpt;
    }
    return null;
  }

  /** The call of a slot as it is stored; null if it is not in its page. */
  #lineOf(index: number): string | null {
    const call = this.#callOf(index);
    if (call === null) return null;
    const page = this.#pageOf(call);
    if (page === null) return null;
    if (placeOf(page.calls) === null) return page.lines[isCopied(page.facts) ? 0 : call - page.firstIndex] ?? null;
    this.unread += 1;
    return null;
  }

  #pageOf(call: number): (StoredPage & { lines: readonly string[] }) | null {
    if (this.#page !== null && call >= this.#page.firstIndex && call < this.#page.end) return this.#page;
    const found = this.#groups.pageOf(slotIdOf(this.#stored.header.seq, call));
    if (found === null) return null;
    const lines = found.calls.split("\n");
    const end = isCopied(found.facts) ? Number.MAX_SAFE_INTEGER : found.firstIndex + lines.length;
    this.#chars += found.calls.length;
    this.#page = { ...found, lines, end };
    return this.#page;
  }
}

/** Where the calls of a graph are, which stores one for each task, at the task's place. Slots are asked for in their order. */
function callsOf(graphJson: string): (index: number) => number | null {
  // Written by this object.
  const { tasks }: CompiledGraph = JSON.parse(graphJson);
  const spans = tasks.map(({ first, slots }, call) => ({ first, end: first + slots, call }));
  spans.sort((a, b) => a.first - b.first);
  let at = 0;
  return (index) => {
    while ((spans[at]?.end ?? Infinity) <= index) at += 1;
    const span = spans[at];
    return span !== undefined && span.first <= index ? span.call : null;
  };
}
