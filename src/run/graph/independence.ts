/**
 * Whether calls that are to run at the same time are independent: five checks of what their client states, before anything
 * is sent. A check cannot see what a call does; it compares what the calls name.
 */
import { CONFLICTS_LISTED_MAX } from "../../limits.ts";
import { tokensOf } from "./refs.ts";

export type IndependenceCheck =
  | "no_dependency"
  | "complete_context"
  | "no_shared_state"
  | "distinct_output"
  | "aggregation_declared";

/** A call, by its id or, without one, its index. */
export type WorkItem = {
  name: string;
  /** Its texts. */
  texts: readonly string[];
  /** What it works on: a file that two calls name may be changed by both. */
  files: readonly string[];
  /** What it changes. */
  writes: readonly string[];
  outputLocation: string | null;
};

/** `items`: names of the first calls that fail the check. */
export type CheckResult = { check: IndependenceCheck; pass: boolean; items: readonly string[] };
/** A file, or an output location, that several calls name. */
export type Conflict = { file: string; items: readonly string[] };

/** `conflicts` has the first ones; `conflictCount` counts all. */
export type Independence = {
  pass: boolean;
  checks: readonly CheckResult[];
  conflicts: readonly Conflict[];
  conflictCount: number;
};

/**
 * Checks calls that start together. Time and memory are linear in the texts and in the files that they name.
 * @param hasAggregation Whether the request says how the answers are combined.
 */
export function checkIndependence(items: Iterable<WorkItem>, hasAggregation: boolean): Independence {
  const names = new Set<string>();
  const references: { name: string; targets: ReadonlySet<string> }[] = [];
  const empty: string[] = [];
  const files = new Map<string, string[]>();
  const outputs = new Map<string, string[]>();
  for (const { name, texts, files: read, writes, outputLocation } of items) {
    names.add(name);
    const targets = new Set(texts.flatMap((text) => targetsOf(text)));
    if (targets.size > 0) references.push({ name, targets });
    if (texts.length > 0 && texts.every((text) => text.trim() === "")) empty.push(name);
    for (const file of new Set([...read, ...writes])) note(files, file, name);
    if (outputLocation !== null) note(outputs, outputLocation, name);
  }
  const dependent = references.filter(({ name, targets }) => [...targets].some((id) => id !== name && names.has(id)));
  const conflicts = [...files].filter(([, users]) => users.length > 1);
  const sharedOutputs = [...outputs].filter(([, users]) => users.length > 1);
  const usersOf = (shared: readonly (readonly [string, readonly string[]])[]) => [
    ...new Set(shared.flatMap(([, users]) => users)),
  ];
  const checks = [
    resultOf(
      "no_dependency",
      dependent.map(({ name }) => name),
    ),
    resultOf("complete_context", empty),
    resultOf("no_shared_state", usersOf(conflicts)),
    resultOf("distinct_output", usersOf(sharedOutputs)),
    { check: "aggregation_declared" as const, pass: hasAggregation, items: [] },
  ];
  return {
    pass: checks.every(({ pass }) => pass),
    checks,
    conflicts: conflicts.slice(0, CONFLICTS_LISTED_MAX).map(([file, users]) => ({ file, items: listed(users) })),
    conflictCount: conflicts.length,
  };
}

/** What keeps the calls from running at the same time, as a message; null if nothing does. Aggregation is no danger to them. */
export function dependenceMessage({ checks, conflicts }: Independence): string | null {
  const failed = checks.filter(({ check, pass }) => !pass && check !== "aggregation_declared");
  if (failed.length === 0) return null;
  const parts = failed.map(({ check, items }) => `${check} (${items.join(", ")})`);
  const files = conflicts.map(({ file, items }) => `"${file}" is named by ${items.join(", ")}`);
  return [`the items are not independent: ${parts.join(", ")}`, ...files].join("; ");
}

function resultOf(check: IndependenceCheck, items: readonly string[]): CheckResult {
  return { check, pass: items.length === 0, items: listed(items) };
}

/** Ids that a text refers to as tasks. */
function targetsOf(text: string): string[] {
  return [...tokensOf(text)].flatMap(({ reference }) => (reference.kind === "task" ? [reference.task] : []));
}

function note(users: Map<string, string[]>, key: string, name: string): void {
  const known = users.get(key);
  if (known === undefined) users.set(key, [name]);
  else known.push(name);
}

function listed(names: readonly string[]): string[] {
  return names.slice(0, CONFLICTS_LISTED_MAX);
}
