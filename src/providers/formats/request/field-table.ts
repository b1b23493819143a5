/**
 * Tables of request fields: what each known field spends. Under a limit, a request with a field that is not in its table is
 * refused.
 */
import type { Dimension } from "../../../errors.ts";

/** Another price per token, or a charge besides the tokens. */
export const SPENDS_PRICE: readonly Dimension[] = ["usd"];
/** Prompt tokens that the bytes of the request do not bound. */
export const SPENDS_PROMPT: readonly Dimension[] = ["usd", "prompt_tokens"];
/** Completions beyond the cap. */
export const SPENDS_COMPLETION: readonly Dimension[] = ["usd", "completion_tokens"];
/** Any work that the provider adds. */
export const SPENDS_ALL: readonly Dimension[] = ["usd", "prompt_tokens", "completion_tokens"];

/** What a field spends beyond every reservation: the reason, and the limits that it could break. */
export type Unreservable = {
  why: string;
  spends: readonly Dimension[];
  /** Values that spend nothing extra. An array is harmless if all its elements are listed, so an empty one always is. */
  harmless?: readonly string[];
  /** Whether its value is plain: one with objects may hold anything, whatever the field itself spends. Absent = it is not. */
  isPlain?: true;
  /** Elements that spend nothing extra. An object is harmless if its one member is a list of only such. Absent = none. */
  harmlessList?: { name: string; element: FieldTable };
};

export type FieldRule =
  /** Counts as prompt, by its bytes or by its own reader. */
  | { kind: "prompt" }
  /** Bounds the completion. */
  | { kind: "cap" }
  /** Multiplies the completions. */
  | { kind: "multiplies" }
  /** Marks a part of the prompt for the provider's cache, which prices its writes by their lifetime. */
  | { kind: "cache_mark" }
  /** Images outside the content, one or a list. `inside`: the fields of those that are objects. */
  | { kind: "media"; inside: FieldTable }
  /** Audio outside the content: of any length, so bounded like files. */
  | { kind: "file"; inside: FieldTable }
  /**
   * Costs nothing by itself. `inside`: the fields of its object, or of each object in its list; if missing, the value is
   * plain: a text, a number, a boolean or a list of them. `addsTokens`: prompt tokens that the provider adds unless the
   * value is false.
   */
  | { kind: "harmless"; inside?: FieldTable; addsTokens?: number }
  /** Any JSON that the client defines, such as a schema or the arguments of a tool: its bytes count as prompt. */
  | { kind: "opaque" }
  /** Names of beta features: each must be in the list of those that cost nothing by themselves. */
  | { kind: "betas" }
  /** Selects one of several prices. */
  | ({ kind: "price" } & Unreservable)
  /** Spends what no reservation covers. */
  | ({ kind: "unreservable" } & Unreservable);

export type FieldTable = {
  rules: ReadonlyMap<string, FieldRule>;
  /** Known names by their folded form. Built at the first name that is not known: few requests have one, and there are 40 tables. */
  folded: () => ReadonlyMap<string, string>;
  /**
   * Names of which one must hold something if the object has an `id`: an id without content may name what the upstream
   * holds. Absent = an `id` names nothing here.
   */
  carries?: readonly string[];
  /** The values of its `type`, which may also be missing; absent = any, or its reader knows them. */
  types?: ReadonlySet<string>;
};

export const HARMLESS: FieldRule = { kind: "harmless" };
export const OPAQUE: FieldRule = { kind: "opaque" };
export const PROMPT: FieldRule = { kind: "prompt" };

/** A part of a table: names with their rules, or harmless names separated by white space. */
export type FieldGroup = string | Readonly<Record<string, FieldRule>>;

/** Builds a table; the later of two rules for one name wins. */
export function fieldTable(...groups: readonly FieldGroup[]): FieldTable {
  const rules = new Map<string, FieldRule>();
  for (const group of groups) {
    const entries =
      typeof group === "string" ? namesIn(group).map((name) => [name, HARMLESS] as const) : Object.entries(group);
    for (const [name, rule] of entries) rules.set(name, rule);
  }
  let folded: ReadonlyMap<string, string> | null = null;
  return { rules, folded: () => (folded ??= new Map([...rules.keys()].map((name) => [foldCase(name), name]))) };
}

/** The rules of opaque fields, from names separated by white space. */
export function opaque(names: string): Readonly<Record<string, FieldRule>> {
  return Object.fromEntries(namesIn(names).map((name) => [name, OPAQUE] as const));
}

/** The rule of a field with an object, or a list of objects, of a table. */
export function holds(inside: FieldTable): FieldRule {
  return { kind: "harmless", inside };
}

/** The table with the names of its content, separated by white space: see `FieldTable.carries`. */
export function carrying(table: FieldTable, names: string): FieldTable {
  return { ...table, carries: namesIn(names) };
}

/** The table with the values of its `type`, separated by white space. */
export function typed(types: string, table: FieldTable): FieldTable {
  return { ...table, types: new Set(namesIn(types)) };
}

function namesIn(text: string): string[] {
  return text.split(/\s+/).filter((name) => name !== "");
}

/**
 * Folds the case of a name as servers in Go compare keys: U+017F is an s and U+212A a k. Upper case maps these to their
 * letters first; it maps a few others too, which can only refuse more.
 */
export function foldCase(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Longest name for which a similar one is searched: known names are shorter. */
const SIMILAR_CHARS_MAX = 32;

/**
 * The known name that an unknown name most likely means, or null: it differs by one or two letters that were added, left
 * out, changed or swapped. Only names of similar length with the same beginning or end are compared, so that hostile
 * names cost little.
 */
export function similarName(name: string, names: Iterable<string>): string | null {
  if (name.length < 2 || name.length > SIMILAR_CHARS_MAX) return null;
  const distanceMax = name.length < 6 ? 1 : 2;
  let best: string | null = null;
  let bestDistance = distanceMax + 1;
  for (const known of names) {
    if (Math.abs(known.length - name.length) > distanceMax) continue;
    if (known[0] !== name[0] && known.at(-1) !== name.at(-1)) continue;
    const distance = editDistance(name, known);
    if (distance < bestDistance) {
      best = known;
      bestDistance = distance;
    }
  }
  return best;
}

/** Damerau's distance of two short texts: each insertion, removal, change or swap of neighbours counts as one. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      let distance = Math.min(
        (above[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, (before[column - 2] ?? 0) + 1);
      }
      current.push(distance);
    }
    before = above;
    above = current;
  }
  return above[b.length] ?? 0;
}
