/**
 * Compiles a JSON Schema (2020-12, with what older drafts spell differently) into a check of bounded work. A schema that means
 * more than is checked here is refused as a whole: an answer that was checked fits all of it.
 */
import { isRecord } from "../json/record.ts";
import { SCHEMA_PARTS_MAX, SCHEMA_PATTERN_STATES_MAX } from "../../limits.ts";
import { countedPattern } from "./pattern.ts";
import { KEYWORDS, UNSUPPORTED } from "./keywords/table.ts";
import {
  misfit,
  type AppliesTo,
  type Check,
  type CountedPattern,
  type Keyword,
  type Misfit,
  type SchemaScope,
} from "./types.ts";

/** A compiled schema, or where in it something is wrong: `.properties.age.minimum`, "" = the schema as a whole. */
export type CompiledSchema = { ok: true; check: Check } | { ok: false; path: string; problem: string };

/** Compiles a schema. */
export function compileSchema(schema: Readonly<Record<string, unknown>>): CompiledSchema {
  const compiler = new SchemaCompiler(schema);
  const check = compiler.compile(schema, "");
  compiler.checkReferences();
  const { refusal } = compiler;
  return refusal === null ? { ok: true, check } : { ok: false, ...refusal };
}

const FITS: Check = () => null;

class SchemaCompiler {
  /** The first thing that is wrong. */
  refusal: Misfit | null = null;
  readonly #root: Readonly<Record<string, unknown>>;
  /** Every schema inside, by the object that it is; a reference may be compiled before its schema is. */
  readonly #checks = new Map<object, Check>();
  /** By schema: those that apply to the same value. */
  readonly #sameValue = new Map<object, object[]>();

  #patternStates = 0;

  constructor(root: Readonly<Record<string, unknown>>) {
    this.#root = root;
  }

  /** Compiles the schema at a path. */
  compile(schema: unknown, path: string): Check {
    if (schema === true) return FITS;
    if (schema === false) return () => misfit("is not allowed");
    if (!isRecord(schema)) return this.#refuse(path, "expected a schema: an object, true or false");
    const known = this.#checks.get(schema);
    if (known !== undefined) return known;
    if (this.#checks.size >= SCHEMA_PARTS_MAX) {
      return this.#refuse("", `has more than ${SCHEMA_PARTS_MAX} schemas inside`);
    }
    const checks: Check[] = [];
    const all: Check = (value, steps) =>
      steps.nested(() => {
        for (const check of checks) {
          const found = check(value, steps);
          if (found !== null) return found;
        }
        return null;
      });
    this.#checks.set(schema, all);
    for (const [name, value] of Object.entries(schema)) {
      const keyword = this.#keywordOf(name, path);
      const check = keyword?.(value, this.#scope(schema, `${path}.${name}`)) ?? null;
      if (check !== null) checks.push(check);
      if (this.refusal !== null) return FITS;
    }
    return all;
  }

  /** Refuses schemas that refer to themselves for the same value: checking them would never end. */
  checkReferences(): void {
    const open = new Set<object>();
    const closed = new Set<object>();
    const ends = (schema: object): boolean => {
      if (closed.has(schema)) return true;
      if (open.has(schema)) return false;
      open.add(schema);
      const all = (this.#sameValue.get(schema) ?? []).every(ends);
      open.delete(schema);
      closed.add(schema);
      return all;
    };
    if (![...this.#sameValue.keys()].every(ends)) {
      this.#refuse("", "refers to itself without going into a part of the value");
    }
  }

  #keywordOf(name: string, path: string): Keyword | null {
    const unsupported = UNSUPPORTED.get(name);
    if (unsupported !== undefined && !(name === "$id" && path === "")) {
      this.#refuse(`${path}.${name}`, `is not supported${unsupported === "" ? "" : `; ${unsupported}`}`);
      return null;
    }
    // What is no keyword describes: the standard has it ignored.
    return KEYWORDS.get(name) ?? null;
  }

  #scope(schema: Record<string, unknown>, path: string): SchemaScope {
    return {
      siblings: schema,
      inner: (inner, innerPath, appliesTo) => this.#inner(schema, inner, { path: `${path}${innerPath}`, appliesTo }),
      pattern: (source, innerPath = "") => this.#pattern(source, `${path}${innerPath}`),
      reference: (pointer) => this.#reference(schema, pointer, path),
      refuse: (problem, innerPath = "") => {
        this.#refuse(`${path}${innerPath}`, problem);
        return null;
      },
    };
  }

  #inner(schema: object, inner: unknown, { path, appliesTo }: { path: string; appliesTo: AppliesTo }): Check {
    if (appliesTo === "same" && isRecord(inner)) this.#applies(schema, inner);
    return this.compile(inner, path);
  }

  #pattern(source: string, path: string): CountedPattern | null {
    const compiled = countedPattern(source);
    const problem = compiled.ok ? null : compiled.problem;
    this.#patternStates += compiled.ok ? compiled.states : 0;
    if (this.#patternStates > SCHEMA_PATTERN_STATES_MAX) {
      this.#refuse("", `has patterns that need more than ${SCHEMA_PATTERN_STATES_MAX} states together`);
    } else if (problem !== null) this.#refuse(path, problem);
    return compiled.ok ? compiled.matches : null;
  }

  #reference(schema: object, pointer: string, path: string): Check {
    const place = placeAt(this.#root, pointer);
    if (place === undefined) {
      return this.#refuse(path, `expected "#" or "#/…", the place of a schema inside this one`);
    }
    if (isRecord(place)) this.#applies(schema, place);
    return this.compile(place, pathOf(pointer));
  }

  #applies(schema: object, inner: object): void {
    const others = this.#sameValue.get(schema);
    if (others === undefined) this.#sameValue.set(schema, [inner]);
    else others.push(inner);
  }

  #refuse(path: string, problem: string): Check {
    this.refusal ??= { path, problem };
    return FITS;
  }
}

/** The value that a pointer of the form `#/$defs/node` leads to; undefined = none. */
function placeAt(root: unknown, pointer: string): unknown {
  if (pointer !== "#" && !pointer.startsWith("#/")) return undefined;
  let place = root;
  for (const name of namesOf(pointer)) {
    const isThere = typeof place === "object" && place !== null && Object.hasOwn(place, name);
    if (!isThere) return undefined;
    place = (place as Record<string, unknown>)[name];
  }
  return place;
}

function pathOf(pointer: string): string {
  return namesOf(pointer)
    .map((name) => `.${name}`)
    .join("");
}

function namesOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => decoded(name).replaceAll("~1", "/").replaceAll("~0", "~"));
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
