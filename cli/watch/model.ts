/** Updates the view of a run with its events. */
import { eventIn } from "../../ui/model/event.ts";
import { callKey, type WatchEvent } from "./event.ts";
import type { View } from "./view.ts";

/** Failed calls that are listed at the end of a group. */
export const FAILURES_KEPT = 10;

/** Updates the view with an event. Events must arrive in order, each once. */
export function fold(view: View, event: WatchEvent): void {
  const { seq, ts: atMs, event_type: type, parallel_group_id } = event;
  const group = view.add(seq, eventIn({ seq, atMs, type, group: parallel_group_id, fields: event }))?.group ?? null;
  if (group === null) return;
  if (event.event_type === "slot_skipped") group.skipped.set(callKey(event), event.code);
  if (event.event_type !== "slot_completed") return;
  group.ended.set(callKey(event), event);
  if (event.status === "failed" && group.failures.length < FAILURES_KEPT) group.failures.push(event);
}
