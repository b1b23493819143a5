/** The log as viewers see it: what happened, when and at what cost, without what a client, a model or a provider wrote. */
import { LABEL_NAMES } from "../labels.ts";
import type { EventLine } from "./events.ts";

/** Fields of a client's event that are not the client's, and its name and step. */
const PLACE = ["seq", "ts", "run_id", "parent_run_id", "parallel_group_id", "depth", "step", "event_type"];

/** An event without texts: messages of errors are null, ids of items and labels that are texts are left out, and of the client's own events only name and place are left. */
export function withoutTexts(line: EventLine): EventLine {
  const { event, json } = line;
  // Written by this gateway a moment ago.
  const fields: Record<string, unknown> = JSON.parse(json);
  if (event.event !== "client") {
    const written = ["item_id", ...LABEL_NAMES].filter((name) => typeof fields[name] === "string");
    if (!("message" in fields) && written.length === 0) return line;
    const figures = Object.fromEntries(Object.entries(fields).filter(([name]) => !written.includes(name)));
    const shown = "message" in fields ? { ...figures, message: null } : figures;
    return { ...line, json: JSON.stringify(shown) };
  }
  const kept = Object.fromEntries(PLACE.map((name) => [name, fields[name] ?? null]));
  const { event_type, step } = kept;
  return { ...line, json: JSON.stringify(kept), event: { ...event, json: JSON.stringify({ event_type, step }) } };
}
