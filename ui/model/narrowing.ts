/** Why fewer calls of a group are in flight than it may have, and what to do about it, in words. */
import { countText, usdText } from "./format.ts";
import { isRecord, numberOf, textOf } from "./line.ts";

/** The field `narrowed_by` of a group's metrics, of its last event or of a run's queue; null = it has none. */
export function narrowingIn(owner: Readonly<Record<string, unknown>>): string | null {
  const { narrowed_by: by } = owner;
  if (!isRecord(by)) return null;
  const dimension = textOf(by, "dimension") ?? "";
  const perCall = numberOf(by, "per_call");
  const reserved =
    dimension === "usd" ? usdText(perCall) : `${countText(Math.ceil(perCall))} ${dimension.replaceAll("_", " ")}`;
  const width = `${countText(numberOf(by, "width"))} of ${countText(numberOf(by, "of"))} calls`;
  return `The budget lets ${width} run at once, because each reserves ${reserved}: ${textOf(by, "remedy") ?? "raise the budget"}.`;
}
