/** The beginning of a call's prompt, for readers who look at one call. */
import { isCopied, placeOf, readCall } from "../../../src/run/queue/call-page.ts";
import { slotIdOf } from "../../../src/run/queue/slot.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { headOf } from "../../../src/providers/formats/request/prompt-head.ts";
import type { RunStore } from "../store/store.ts";

/** As its client sent it, before outputs and contexts are inserted; null if the call has no text, or its body is in R2. */
export function promptHead({ groups }: Pick<RunStore, "groups">, seq: number, index: number): string | null {
  const stored = groups.get(seq)?.stored;
  const call = callIndexOf(groups.graphJson(seq), index);
  const page = stored === undefined || call === null ? null : groups.pageOf(slotIdOf(seq, call));
  if (stored === undefined || call === null || page === null || placeOf(page.calls) !== null) return null;
  const line = page.calls.split("\n")[isCopied(page.facts) ? 0 : call - page.firstIndex];
  return line === undefined ? null : headOf(readCall(line, stored.defaultsJson));
}

/** A graph stores one call for each task, at the task's place. */
function callIndexOf(graphJson: string | null, index: number): number | null {
  if (graphJson === null) return index;
  // Written by this object.
  const { tasks }: CompiledGraph = JSON.parse(graphJson);
  const position = tasks.findIndex(({ first, slots }) => index >= first && index < first + slots);
  return position === -1 ? null : position;
}
