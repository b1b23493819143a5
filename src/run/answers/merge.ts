/** Combining answers: as one text, or as one JSON value with its conflicts. */
import { MERGE_CHARS_MAX, MERGE_CONFLICTS_SHOWN } from "../../limits.ts";
import { jsonInAnswer } from "./answer-json.ts";
import { canonicalJson } from "../../text/schema/canonical.ts";
import type { Member } from "./member.ts";

export type MergeSpec = { strategy: "merge" } & ({ mode: "concat"; separator: string } | { mode: "json" });

/** One place where answers differ: the value that was kept, and one that was not. */
type Conflict = { path: string; kept: unknown; kept_from: number; other: unknown; other_from: number };

export type MergeResult = {
  strategy: "merge";
  mode: MergeSpec["mode"] | "llm";
  /** Null if no answer could be merged. */
  output: unknown;
  /** Answers in the output. */
  merged: number;
  /** Indexes of completed slots whose answers are not: they have no JSON, or did not fit. */
  left_out: number[];
  conflicts: Conflict[];
  conflicts_in_all: number;
};

/** An object while it is merged: a map takes any name of a member, `__proto__` too. */
type Merged = Map<string, Entry>;
/** `from`: the answer that the value comes from. */
type Entry = { value: Merged; from: number } | { value: unknown[]; from: number } | { value: Leaf; from: number };
type Leaf = string | number | boolean | null;

export class Merge {
  readonly #spec: MergeSpec;
  readonly #parts: string[] = [];
  readonly #leftOut: number[] = [];
  readonly #conflicts: Conflict[] = [];
  /** The texts of the elements of arrays that are merged. */
  readonly #elements = new Map<unknown[], Set<string>>();
  #conflictCount = 0;
  #root: Entry | null = null;
  #merged = 0;
  #chars = 0;

  constructor(spec: MergeSpec) {
    this.#spec = spec;
  }

  /** Takes the members in input order: of values that differ, the first is kept. */
  add({ index, completed, text }: Member): void {
    if (!completed) return;
    if (this.#chars + text.length > MERGE_CHARS_MAX || !this.#take(index, text)) {
      this.#leftOut.push(index);
      return;
    }
    this.#chars += text.length;
    this.#merged += 1;
  }

  result(): MergeResult {
    const { mode } = this.#spec;
    return {
      strategy: "merge",
      mode,
      output: this.#output(),
      merged: this.#merged,
      left_out: this.#leftOut,
      conflicts: this.#conflicts,
      conflicts_in_all: this.#conflictCount,
    };
  }

  #output(): unknown {
    if (this.#merged === 0) return null;
    if (this.#spec.mode === "concat") return this.#parts.join(this.#spec.separator);
    return this.#root === null ? null : plain(this.#root.value);
  }

  #take(index: number, text: string): boolean {
    if (this.#spec.mode === "concat") {
      this.#parts.push(text);
      return true;
    }
    const value = jsonInAnswer(text);
    if (value === undefined) return false;
    if (this.#root === null) this.#root = entryOf(value, index);
    else this.#root = this.#combine(this.#root, entryOf(value, index), "");
    return true;
  }

  /** Adds what an array does not have. The texts of its elements are kept: it grows by every answer. */
  #join(kept: unknown[], other: readonly unknown[]): void {
    const known = this.#elements.get(kept) ?? new Set(kept.map((element) => canonicalJson(element)));
    this.#elements.set(kept, known);
    // As they were before: an answer's own repeats are kept.
    const added = other
      .map((element) => ({ element, text: canonicalJson(element) }))
      .filter(({ text }) => !known.has(text));
    for (const { element, text } of added) {
      kept.push(element);
      known.add(text);
    }
  }

  #combine(kept: Entry, other: Entry, path: string): Entry {
    if (kept.value instanceof Map && other.value instanceof Map) {
      for (const [name, entry] of other.value) {
        const known = kept.value.get(name);
        const at = path === "" ? name : `${path}.${name}`;
        kept.value.set(name, known === undefined ? entry : this.#combine(known, entry, at));
      }
    } else if (Array.isArray(kept.value) && Array.isArray(other.value)) {
      this.#join(kept.value, other.value);
    } else if (kept.value !== other.value) {
      // Two that are no objects and no lists, or two of different kinds.
      this.#conflictCount += 1;
      if (this.#conflicts.length >= MERGE_CONFLICTS_SHOWN) return kept;
      const conflict = { path, kept: plain(kept.value), kept_from: kept.from };
      this.#conflicts.push({ ...conflict, other: plain(other.value), other_from: other.from });
    }
    return kept;
  }
}

function entryOf(value: unknown, from: number): Entry {
  if (Array.isArray(value)) return { value: [...(value as unknown[])], from };
  if (typeof value !== "object" || value === null) return { value: value as Leaf, from };
  return { value: new Map(Object.entries(value).map(([name, each]) => [name, entryOf(each, from)])), from };
}

function plain(value: Entry["value"]): unknown {
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([name, entry]) => [name, plain(entry.value)]));
}
