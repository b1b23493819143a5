/**
 * The JSON answer of a batch, as pieces of text. A large one is never assembled: `results` and `responses` are the same
 * texts, so the second list is read from the run's rows once more if the first is too large to keep in memory.
 */
import type { GroupView, SlotView } from "../run-api/groups.ts";
import type { ErrorStyle } from "../contract/fields.ts";
import { ANSWER_KEPT_CHARS_MAX } from "../limits.ts";
import { slotError, slotItem, slotResult } from "./slot.ts";
import { usageOf } from "./usage.ts";

export type BatchAnswer = {
  group: GroupView;
  style: ErrorStyle;
  /** A page of slots in input order, from an index on; empty after the last. */
  slotsFrom: (index: number) => Promise<SlotView[]>;
};

/** Yields the answer's text, piece by piece. */
export async function* batchJson({ group, style, slotsFrom }: BatchAnswer): AsyncGenerator<string> {
  const errors: string[] = [];
  const items: string[] = [];
  let kept: string[] | null = [];
  let keptChars = 0;
  yield `{"id":${JSON.stringify(group.id)},"object":"group","status":"${group.status}","results":[`;
  for await (const slots of pagesOf(group.count, slotsFrom)) {
    const results = slots.map((slot) => {
      const error = slotError(slot);
      errors.push(JSON.stringify(error));
      items.push(JSON.stringify(slotItem(slot)));
      return JSON.stringify(slotResult(slot, error, style));
    });
    const text = `${slots[0]?.index === 0 ? "" : ","}${results.join(",")}`;
    keptChars += text.length;
    if (keptChars <= ANSWER_KEPT_CHARS_MAX) kept?.push(text);
    else kept = null;
    yield text;
  }
  yield `],"responses":[`;
  if (kept !== null) yield kept.join("");
  else {
    for await (const slots of pagesOf(group.count, slotsFrom)) {
      const results = slots.map((slot) => JSON.stringify(slotResult(slot, slotError(slot), style)));
      yield `${slots[0]?.index === 0 ? "" : ","}${results.join(",")}`;
    }
  }
  yield `],"errors":[${errors.join(",")}],"items":[${items.join(",")}],`;
  yield JSON.stringify(measuresOf(group)).slice(1);
}

/** A group that has not ended: its state, without results. */
export function runningJson(group: GroupView) {
  const { id, status } = group;
  return { id, object: "group", status, ...measuresOf(group) };
}

function measuresOf({ usage, metrics, effectiveParallel, count, counts, openedAtMs, endedAtMs }: GroupView) {
  return {
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
  for (let from = 0; from < count;) {
    const slots = await slotsFrom(from);
    if (slots.length === 0) throw new Error(`a group of ${count} slots ends at slot ${from}`);
    from += slots.length;
    yield slots;
    // workerd keeps what a call returned until its next full collection: emptied, that is little.
    slots.length = 0;
  }
}
