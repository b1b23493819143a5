/** A page of a group's slots, in input order, whether they have ended or not. */
import { answerChars } from "../../answer.ts";
import type { SlotView } from "../../objects/methods/groups.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../limits.ts";
import { partsOfSlot, withParts } from "./parts.ts";
import { slotError, slotItem, slotResult } from "./slot.ts";
import { shownWaiting } from "./waiting.ts";

type Source = {
  count: number;
  style: ErrorStyle;
  /** Slots in input order from an index on, some of them; empty after the last. */
  reader: { slotsFrom: (index: number) => Promise<SlotView[]> };
};

/** Up to `limit` slots after index `after` as JSON text, fewer if they are large: a page is in memory. */
export async function resultsPageOf(
  { count, style, reader }: Source,
  { after, limit }: { after: number; limit: number },
): Promise<string> {
  const data: string[] = [];
  let next = after + 1;
  for (let chars = 0; next < count && data.length < limit && chars < RESULTS_REPLY_BYTES_MAX;) {
    const slots = await reader.slotsFrom(next);
    if (slots.length === 0) break;
    for (const slot of slots.slice(0, limit - data.length)) {
      const error = slotError(slot);
      const waiting_for = slot.waitingFor === undefined ? null : shownWaiting(slot.waitingFor);
      const fields = { ...slotItem(slot), result: slotResult(slot, error, style), error, waiting_for };
      data.push(withParts(fields, partsOfSlot(slot)));
      chars += answerChars(slot);
      // A graph has indexes without a slot.
      next = slot.index + 1;
    }
  }
  const hasMore = next < count;
  const place = JSON.stringify({ has_more: hasMore, next_after: hasMore ? next - 1 : null });
  return `{"object":"list","data":[${data.join(",")}],${place.slice(1)}`;
}
