/** How the reports of runs change what an upstream object stores of templates. */
import { isKnown, type TemplateFacts } from "../money/template.ts";
import { factsOf, testimonyOf, withReport, type Witness } from "../money/witnesses.ts";
import { TEMPLATES_PER_TREE_MAX, TEMPLATES_PER_UPSTREAM_MAX } from "../../limits.ts";
import { ANY_MODEL, type TemplateRow } from "./templates.ts";

/** A row's place among those of its upstream. */
export function keyOf({ model, shape }: Pick<TemplateRow, "model" | "shape">): string {
  return `${model}\n${shape}`;
}

/**
 * The rows that change. A template for which there is no room is stored as one of any model. Reports
 * without a root count as those of one tree.
 */
export function learned(rows: readonly TemplateRow[], seen: readonly TemplateRow[], nowMs: number): TemplateRow[] {
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  const changed = new Map<string, TemplateRow>();
  for (const { model, shape, root = "", witnesses: _, ...facts } of seen) {
    const isRoom = known.has(keyOf({ model, shape })) || hasRoom(known, root);
    const place = { model: isRoom ? model : ANY_MODEL, shape };
    const key = keyOf(place);
    const before = known.get(key)?.witnesses ?? [];
    if (isKnown(testimonyOf(before, root, nowMs).stored, facts)) continue;
    const witnesses = withReport(before, root, facts, nowMs);
    const row = { ...factsFor(witnesses, nowMs), ...place, witnesses };
    known.set(key, row);
    changed.set(key, row);
  }
  return [...changed.values()];
}

/** Whether a tree may add a template: one that makes up models must leave room for those of others. */
function hasRoom(known: ReadonlyMap<string, TemplateRow>, root: string): boolean {
  if (known.size >= TEMPLATES_PER_UPSTREAM_MAX) return false;
  let alone = 0;
  for (const { witnesses = [] } of known.values()) {
    if (witnesses.length === 1 && witnesses[0]?.root === root) alone += 1;
  }
  return alone < TEMPLATES_PER_TREE_MAX;
}

/** The facts beside the witnesses: what is believed, or what the only witness saw. */
function factsFor(witnesses: readonly Witness[], nowMs: number): TemplateFacts {
  const [first] = witnesses;
  if (first === undefined) throw new Error("a template that nobody has seen");
  return testimonyOf(witnesses, NOBODY, nowMs).believed ?? factsOf(first);
}

/** No tree has this name. */
const NOBODY = "\n";
