/** What the queued calls of a group wait for, in words. */
import { durationText } from "./format.ts";
import { isRecord, numberOf, textOf } from "./line.ts";

/** One cause, and how many calls wait for it. */
export type Wait = { slots: number; cause: string };

/** The field `waiting_for` of a group. Causes that this page does not know are left out. */
export function waitsIn(group: Readonly<Record<string, unknown>>): Wait[] {
  const { waiting_for: listed } = group;
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((wait: unknown) => {
    const cause = isRecord(wait) ? causeOf(wait) : null;
    return isRecord(wait) && cause !== null ? [{ slots: numberOf(wait, "slots"), cause }] : [];
  });
}

/** The waits of several groups, those of the same cause added up, most calls first. */
export function addedUp(waits: readonly Wait[]): Wait[] {
  const sums = new Map<string, number>();
  for (const { cause, slots } of waits) sums.set(cause, (sums.get(cause) ?? 0) + slots);
  return [...sums].map(([cause, slots]) => ({ cause, slots })).toSorted((a, b) => b.slots - a.slots);
}

const AT_GATE: Readonly<Record<string, string>> = {
  requests_per_minute: "its requests per minute",
  tokens_per_minute: "its tokens per minute",
  width: "as many calls as it takes are in flight",
  stopped: "the provider refuses its key",
};

function causeOf(wait: Readonly<Record<string, unknown>>): string | null {
  const readyMs = typeof wait["ready_in_ms"] === "number" ? wait["ready_in_ms"] : null;
  const soon = readyMs === null || readyMs <= 0 ? "" : `, for about ${durationText(readyMs)}`;
  const gate = textOf(wait, "gate");
  const model = textOf(wait, "model");
  if (gate !== null && model !== null) return `${gate}: its model ${model} is overloaded${soon}`;
  if (gate !== null) return `${gate}: ${AT_GATE[textOf(wait, "reason") ?? ""] ?? "its limits"}${soon}`;
  const budget = textOf(wait, "budget");
  if (budget !== null && wait["exhausted"] === true) return `a higher limit: the budget ${unitOf(budget)} is used up`;
  if (budget !== null) return `the budget ${unitOf(budget)}: reservations of calls in flight take the rest`;
  if (Array.isArray(wait["dependency"])) return `other tasks: ${wait["dependency"].slice(0, 3).map(String).join(", ")}`;
  if ("context" in wait || "prefix" in wait)
    return "the first call with the same text, which writes it to the provider's cache";
  if ("provider_batch" in wait) return "a batch of the provider, at a lower price";
  if (wait["confirmation"] === true) return "a confirmation: the quote is above confirm_over of the run";
  if (wait["tier"] === true) return "the calls of an earlier tier";
  if (wait["equal_call"] === true) return "the answer of an equal call in flight";
  if (wait["retry"] === true) return "the pause before a retry";
  return wait["permit"] === true ? "one of the run's calls to end: as many are in flight as max_parallel allows" : null;
}

/** `in dollars`, `of calls`. */
function unitOf(dimension: string): string {
  return dimension === "usd" ? "in dollars" : `of ${dimension.replaceAll("_", " ")}`;
}
