/** Names a cost in a stream: in the usage object of one event, whose other bytes stay as they are, or in a comment. */
import { applyPatches } from "../../../text/json/edit.ts";
import { member, readObject, scanObject, valueAtPath } from "../../../text/json/scan.ts";

const encoder = new TextEncoder();

/**
 * The event with `"cost"` in the object at `path` of its data: added at the object's end, or in the place of a null.
 * `data` is the event with all else blanked. Returns the event itself if it has a cost already, if the object is missing
 * or empty, or if the data is not strict JSON.
 */
export function addCost(event: Uint8Array, data: Uint8Array, path: readonly string[], costUsd: number): Uint8Array {
  const scan = scanObject(data);
  const found = scan.ok ? valueAtPath(data, scan.object, path) : null;
  const usage = found?.kind === "object" ? readObject(data, found.start) : null;
  const last = usage?.members.at(-1);
  if (usage === null || last === undefined || !Number.isFinite(costUsd)) return event;
  const cost = member(usage, "cost");
  if (cost === null) return applyPatches(event, [{ start: last.end, end: last.end, text: `,"cost":${costUsd}` }]);
  return cost.kind === "null" ? applyPatches(event, [{ ...cost, text: String(costUsd) }]) : event;
}

/** Decimals of USD that a comment has: the ledger counts nano-USD. */
const USD_DECIMALS = 9;

/** The line that names the cost of a stream whose events are left as they came. Clients of the protocols ignore comments. */
export function costComment(costUsd: number): Uint8Array {
  return encoder.encode(`: fanout cost=${costUsd.toFixed(USD_DECIMALS).replace(/\.?0+$/, "")}\n\n`);
}
