/** Sets the cost of an answer; all other bytes stay as they were. */
import { applyPatches } from "../../../text/json/edit.ts";
import { member, numberOf, readObject, type JsonObject } from "../../../text/json/scan.ts";

/**
 * Sets `cost`, in USD, in the usage of an answer, whose object was read of these bytes. One that has no usage object, or has that cost
 * already, is returned as it is.
 */
export function fillCost(bytes: Uint8Array, answer: JsonObject, costUsd: number): Uint8Array {
  const found = member(answer, "usage");
  const usage = found?.kind === "object" ? readObject(bytes, found.start) : null;
  if (usage === null) return bytes;
  const named = member(usage, "cost");
  if (named?.kind === "number" && numberOf(bytes, named) === costUsd) return bytes;
  if (named !== null) return applyPatches(bytes, [{ start: named.start, end: named.end, text: String(costUsd) }]);
  const last = usage.members.at(-1);
  const at = last?.end ?? usage.start + 1;
  return applyPatches(bytes, [{ start: at, end: at, text: `${last === undefined ? "" : ","}"cost":${costUsd}` }]);
}
