/** A batch as a stream: one event per slot as it ends, in NDJSON or as server-sent events. */
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { usdOf } from "../../run/money/money.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import type { Aggregation } from "./aggregation.ts";
import { emptyBatch } from "./batch-json.ts";
import { partsOfSlot, withParts } from "./parts.ts";
import { slotError, slotItem, slotResult } from "./slot.ts";
import { stopFields, tierFields } from "./rule-fields.ts";
import { usageOf } from "./usage.ts";

/** How events are framed, and the content type of that framing. */
export type Framing = {
  contentType: string;
  frame: (type: string, id: number, json: string) => string;
  keepAlive: string;
};

/** One JSON text per line. A line of nothing keeps the connection alive: readers of NDJSON skip empty lines. */
export const NDJSON: Framing = {
  contentType: "application/x-ndjson; charset=utf-8",
  frame: (_type, _id, json) => `${json}\n`,
  keepAlive: "\n",
};

/** Server-sent events. JSON text has no line breaks, so one `data:` line is enough. */
export const SSE: Framing = {
  contentType: "text/event-stream; charset=utf-8",
  frame: (type, id, json) => `id: ${id}\nevent: ${type}\ndata: ${json}\n\n`,
  keepAlive: ": keep-alive\n\n",
};

/** The event that opens the stream. */
export function startedEvent(opened: { id: string; count: number; effectiveParallel: number }) {
  const { id, count, effectiveParallel } = opened;
  return { type: "group_started", id, parallel_group_id: id, count, effective_parallel: effectiveParallel };
}

/** The event of a slot that has ended, as JSON text. */
export function slotEvent(groupId: string, slot: SlotView, style: ErrorStyle): string {
  const error = slotError(slot);
  const { index, id, ...rest } = slotItem(slot);
  const result = slotResult(slot, error, style);
  const event = { type: "slot", index, id, parallel_group_id: groupId, result, error, ...rest };
  return withParts(event, partsOfSlot(slot));
}

/** The event that ends the stream. */
export function completedEvent(group: GroupView, aggregation?: Aggregation) {
  return {
    type: "group_completed",
    id: group.id,
    parallel_group_id: group.id,
    status: group.status,
    count: group.count,
    execution_ms: group.metrics.wall_ms,
    cost: usdOf(group.usage.costNanoUsd),
    usage: usageOf(group.usage),
    metrics: group.metrics,
    effective_parallel: group.effectiveParallel,
    ...stopFields(group.stop),
    ...tierFields(group.tierFailures),
    replayed: group.replayed,
    missing: group.missing,
    aggregation,
  };
}

/** The only event of a batch without calls. */
export function emptyEvent(effectiveParallel: number) {
  const { id, status, usage, metrics } = emptyBatch(effectiveParallel, "");
  return {
    type: "group_completed",
    id,
    parallel_group_id: id,
    status,
    count: 0,
    execution_ms: 0,
    cost: 0,
    usage,
    metrics,
    effective_parallel: effectiveParallel,
  };
}
