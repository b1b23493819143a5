/**
 * What the group of a retry has in common with the groups before it: it refers to their rows, and copies none. A retry is a request of a
 * few bytes, and what it retries may be megabytes of calls and answers.
 */
import { indexOf } from "../../../src/run/queue/slot.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { StoredGroup } from "./records.ts";
import type { Rows } from "./sql.ts";

/**
 * A group before a retry: what completed in it by itself counts in the retry too. `firstCall`: from this call on, its pages have them;
 * null = it has no pages of its own.
 */
export type Before = { seq: number; firstCall: number | null };

/** Which groups retries refer to: one row per retry, with the groups before it, oldest first. */
export class RetriedRows {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  put(seq: number, before: readonly Before[]): void {
    this.#rows.write("retried", "INSERT INTO retried (seq, before) VALUES (?, ?)", seq, JSON.stringify(before));
  }

  /** The groups before a retry, oldest first. None: it is no retry. */
  before(seq: number): readonly Before[] {
    const row = this.#rows.first<{ before: string }>("retried", "SELECT before FROM retried WHERE seq = ?", seq);
    return row === undefined ? [] : (JSON.parse(row.before) as Before[]);
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** A retry as its row has it: what is different in the group `like`, and the names of the header that only that group has. */
type RetryRow = { like: number; group: Fields; header: Fields; without: readonly string[] };

/** The text of a group for its row. `like`: the first group before it; null = it is no retry. */
export function groupJson(group: StoredGroup, like: StoredGroup | null): string {
  if (like === null) return JSON.stringify(group);
  const { header, ...rest } = group;
  const { header: likeHeader, ...likeRest } = like;
  return JSON.stringify({
    like: likeHeader.seq,
    group: differing(rest, likeRest),
    header: differing(header, likeHeader),
    without: Object.keys(likeHeader).filter((name) => !(name in header)),
  } satisfies RetryRow);
}

/** The group of a row. `groupOf`: another one by its number, which is no retry. */
export function groupOfJson(json: string, groupOf: (seq: number) => StoredGroup): StoredGroup {
  const row: StoredGroup | RetryRow = JSON.parse(json);
  if (!("like" in row)) return row;
  const like = groupOf(row.like);
  const header: Record<string, unknown> = { ...like.header, ...row.header };
  for (const name of row.without) delete header[name];
  return { ...like, ...row.group, header } as StoredGroup;
}

function differing(of: Fields, like: Fields): Fields {
  const isDifferent = ([name, value]: [string, unknown]): boolean =>
    value !== like[name] && JSON.stringify(value) !== JSON.stringify(like[name]);
  return Object.fromEntries(Object.entries(of).filter(isDifferent));
}

/** The graph of a group before as a retry has it: of a plan that was cancelled while it was written, no more comes. */
export function retriedGraphJson(json: string): string {
  // Only the text of an open plan has this; most graphs are not read for it.
  if (!json.includes('"plan":{"state":"open"')) return json;
  const graph: CompiledGraph = JSON.parse(json);
  return graph.plan?.state === "open" ? JSON.stringify({ ...graph, plan: { ...graph.plan, state: "cut" } }) : json;
}

/** The slots of several groups as those of one, in order: each index is in at most one of them. */
export function* inOrder(groups: readonly Iterable<SlotRecord>[]): Generator<SlotRecord> {
  const heads = groups.map((group) => {
    const rest = group[Symbol.iterator]();
    return { rest, next: rest.next() };
  });
  try {
    for (;;) {
      let first: { rest: Iterator<SlotRecord>; next: IteratorResult<SlotRecord> } | null = null;
      let record: SlotRecord | null = null;
      for (const head of heads) {
        if (head.next.done === true) continue;
        if (record !== null && indexOf(record.id) <= indexOf(head.next.value.id)) continue;
        first = head;
        record = head.next.value;
      }
      if (first === null || record === null) return;
      yield record;
      first.next = first.rest.next();
    }
  } finally {
    for (const { rest } of heads) rest.return?.();
  }
}

/** A slot of a group before as the retry has it: an end that took no attempt and cost nothing. */
export function keptIn(record: SlotRecord, id: number): SlotRecord {
  const { replay: _replay, savedNanoUsd: _saved, checks: _checks, course: _course, ...told } = record;
  const { cacheHitTokens: _hit, reasoningTokens: _reasoning, ...rest } = told;
  const nothing = { attempts: 0, notBeforeMs: null, latencyMs: 0, queuedMs: 0, promptTokens: 0, completionTokens: 0 };
  return { ...rest, ...nothing, id, costNanoUsd: 0, estimated: false, reason: null };
}
