/** Sets the cost of an answer or event; all other bytes stay as they were. */
import { editJson } from "../../../text/json/edit.ts";
import { numberOf, scanObject, valueAtPath } from "../../../text/json/scan.ts";

/** The path of the usage in a body: `["response", "usage"]` in events of the Responses API, for instance. */
export type UsagePath = readonly [string, ...string[]];

/**
 * Sets `cost`, in USD, in the usage of an answer or event. A body that is not JSON, has no usage object, or has
 * that cost already is returned as it is.
 */
export function fillCost(bytes: Uint8Array, costUsd: number, usagePath: UsagePath = ["usage"]): Uint8Array {
  const scan = scanObject(bytes);
  if (!scan.ok) return bytes;
  if (valueAtPath(bytes, scan.object, usagePath)?.kind !== "object") return bytes;
  const path: UsagePath = [...usagePath, "cost"];
  const named = valueAtPath(bytes, scan.object, path);
  if (named?.kind === "number" && numberOf(bytes, named) === costUsd) return bytes;
  return editJson(bytes, scan.object, [{ path, json: JSON.stringify(costUsd) }]);
}
