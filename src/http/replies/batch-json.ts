/**
 * The JSON answer of a batch, as pieces of text. A large one is never assembled: its four lists are made of the same slots,
 * which are read in pages. A list that is short is made beside the first one; the slots are read once more for each other.
 */
import { heldQuoteJson } from "../../log/events.ts";
import type { MakeCalls } from "../../run/answers/calls.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import { ANSWER_KEPT_CHARS_MAX, ANSWER_NOTES_CHARS_MAX, RESULT_PAGES_AHEAD } from "../../limits.ts";
import { aggregationOf } from "./aggregation.ts";
import { readAhead } from "./read-ahead.ts";
import { partsOfSlot, withParts } from "./parts.ts";
import { resultJson, slotError, slotItem } from "./slot.ts";
import { speculationFields, stopFields, tierFields } from "./rule-fields.ts";
import { usageOf } from "./usage.ts";
import { shownWaits } from "./waiting.ts";

export type BatchAnswer = {
  group: GroupView;
  style: ErrorStyle;
  /** A page of slots in input order, from an index on; empty after the last. */
  slotsFrom: (index: number) => Promise<SlotView[]>;
  /** Makes the calls that combine its answers; absent = none do. */
  makeCalls?: MakeCalls;
  /** Further members of the answer. */
  more?: object;
};

/** Yields the answer's text, piece by piece. */
export async function* batchJson({
  group,
  style,
  slotsFrom,
  makeCalls,
  more = {},
}: BatchAnswer): AsyncGenerator<string> {
  const result: Show = (slot) => resultJson(slot, slotError(slot), style);
  const responses = new KeptList(result, ANSWER_KEPT_CHARS_MAX);
  const errors = new KeptList((slot) => JSON.stringify(slotError(slot)), ANSWER_NOTES_CHARS_MAX);
  const items = new KeptList((slot) => withParts(slotItem(slot), partsOfSlot(slot)), ANSWER_NOTES_CHARS_MAX);
  const pages = (): AsyncGenerator<SlotView[]> => pagesOf(group.count, slotsFrom);
  yield `{"id":${JSON.stringify(group.id)},"object":"group","status":"${group.status}","results":[`;
  for await (const slots of pages()) {
    const text = textOf(slots, result);
    responses.add(slots, text);
    errors.add(slots);
    items.add(slots);
    yield text;
  }
  yield `],"responses":[`;
  yield* responses.text(pages);
  yield `],"errors":[`;
  yield* errors.text(pages);
  yield `],"items":[`;
  yield* items.text(pages);
  const { aggregate } = group;
  const source = { group, slotsFrom, ...(makeCalls !== undefined && { makeCalls }) };
  const combined = aggregate === undefined ? {} : { aggregation: await aggregationOf(aggregate, source) };
  yield `],${JSON.stringify({ ...combined, ...measuresOf(group), ...more }).slice(1)}`;
}

/** What a list of the answer has for a slot, as JSON text. */
type Show = (slot: SlotView) => string;

/** The elements of a page of slots, after those of the page before. */
function textOf(slots: readonly SlotView[], show: Show): string {
  const elements = slots.map(show).join(",");
  return slots[0]?.index === 0 ? elements : `,${elements}`;
}

/** A list of the answer that is written after another one: its text is kept while it is short. */
class KeptList {
  readonly #show: Show;
  readonly #charsMax: number;
  #kept: string[] | null = [];
  #chars = 0;

  constructor(show: Show, charsMax: number) {
    this.#show = show;
    this.#charsMax = charsMax;
  }

  /** Adds the next page; `text` is its text in this list, if it is known. */
  add(slots: readonly SlotView[], text?: string): void {
    if (this.#kept === null) return;
    const added = text ?? textOf(slots, this.#show);
    this.#chars += added.length;
    if (this.#chars <= this.#charsMax) this.#kept.push(added);
    else this.#kept = null;
  }

  /** The list's text: as it was kept, or from the slots once more. */
  async *text(pages: () => AsyncGenerator<SlotView[]>): AsyncGenerator<string> {
    if (this.#kept !== null) yield this.#kept.join("");
    else for await (const slots of pages()) yield textOf(slots, this.#show);
  }
}

/** A group that has not ended: its state, without results. */
export function runningJson(group: GroupView) {
  const { id, waitsFor = [], queuedAhead, paused, held } = group;
  const waits = {
    waiting_for: shownWaits(waitsFor),
    ...(queuedAhead !== undefined && { queue: queueOf(queuedAhead) }),
    ...(held !== undefined && { quote: heldQuoteJson(held) }),
    ...(paused !== undefined && {
      paused: { budget: paused.dimension, since: new Date(paused.sinceMs).toISOString() },
    }),
  };
  return { id, object: "group", status: shownStatus(group), ...measuresOf(group), ...waits };
}

/** The status on the wire: a group that awaits its confirmation counts as running. */
export function shownStatus({ status, held }: Pick<GroupView, "status" | "held">) {
  return held === undefined ? status : "awaiting_confirmation";
}

function queueOf(queued_ahead: number) {
  return { queue_position: queued_ahead + 1, queued_ahead };
}

function measuresOf({ usage, metrics, effectiveParallel, count, counts, openedAtMs, endedAtMs, ...rules }: GroupView) {
  return {
    ...stopFields(rules.stop),
    ...speculationFields(rules.speculation),
    ...tierFields(rules.tierFailures),
    replayed: rules.replayed,
    missing: rules.missing,
    usage: usageOf(usage),
    metrics,
    effective_parallel: effectiveParallel,
    count,
    counts,
    created_at: new Date(openedAtMs).toISOString(),
    ended_at: endedAtMs === null ? null : new Date(endedAtMs).toISOString(),
  };
}

/** The answer to an empty batch: no group, no cost. */
export function emptyBatch(effectiveParallel: number, at: string) {
  return {
    id: null,
    object: "group",
    status: "completed",
    results: [],
    responses: [],
    errors: [],
    items: [],
    usage: usageOf({ promptTokens: 0, completionTokens: 0, costNanoUsd: 0 }),
    metrics: { wall_ms: 0, sequential_ms: 0, speedup: 1, peak_parallel: 0, success_rate: 1 },
    effective_parallel: effectiveParallel,
    count: 0,
    counts: { queued: 0, running: 0, completed: 0, failed: 0, skipped: 0, cancelled: 0 },
    created_at: at,
    ended_at: at,
  };
}

async function* pagesOf(count: number, slotsFrom: BatchAnswer["slotsFrom"]): AsyncGenerator<SlotView[]> {
  for await (const slots of readAhead(storedPages(count, slotsFrom), RESULT_PAGES_AHEAD)) {
    yield slots;
    // workerd keeps what a call returned until its next full collection: emptied, that is little.
    slots.length = 0;
  }
}

async function* storedPages(count: number, slotsFrom: BatchAnswer["slotsFrom"]): AsyncGenerator<SlotView[]> {
  for (let from = 0; from < count;) {
    const slots = await slotsFrom(from);
    if (slots.length === 0) throw new Error(`a group of ${count} slots ends at slot ${from}`);
    from += slots.length;
    yield slots;
  }
}
