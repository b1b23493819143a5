/** Keywords about objects. Names of answers are looked up as own names only: `constructor` is a name like any other. */
import { isRecord } from "../../json/record.ts";
import { misfit, within, type Check, type CountedPattern, type Keyword, type SchemaScope } from "../types.ts";
import { isCount } from "./values.ts";

/** The schemas of an object of schemas, by name. */
function checksOf(sent: unknown, { inner, refuse }: SchemaScope, appliesTo: "same" | "part"): [string, Check][] | null {
  if (!isRecord(sent)) return refuse("expected an object of schemas");
  return Object.entries(sent).map(([name, schema]) => [name, inner(schema, `.${name}`, appliesTo)]);
}

const properties: Keyword = (sent, scope) => {
  const checks = checksOf(sent, scope, "part");
  if (checks === null) return null;
  return (value, steps) => {
    if (!isRecord(value)) return null;
    steps.spend(checks.length);
    for (const [name, check] of checks) {
      if (!Object.hasOwn(value, name)) continue;
      const found = check(value[name], steps);
      if (found !== null) return within(`.${name}`, found);
    }
    return null;
  };
};

/** Compiled patterns with what they stand for; refuses the first that cannot be matched. */
function patternsOf(sent: unknown, { refuse, pattern }: SchemaScope): [string, CountedPattern][] | null {
  if (!isRecord(sent)) return refuse("expected an object of schemas");
  const patterns: [string, CountedPattern][] = [];
  for (const source of Object.keys(sent)) {
    const matches = pattern(source, `.${source}`);
    if (matches === null) return null;
    patterns.push([source, matches]);
  }
  return patterns;
}

const patternProperties: Keyword = (sent, scope) => {
  const patterns = patternsOf(sent, scope);
  if (patterns === null || !isRecord(sent)) return null;
  const checks = patterns.map(([source, pattern]) => ({
    pattern,
    check: scope.inner(sent[source], `.${source}`, "part"),
  }));
  return (value, steps) => {
    if (!isRecord(value)) return null;
    for (const [name, inner] of Object.entries(value)) {
      steps.spend(checks.length + 1);
      for (const { pattern, check } of checks) {
        const found = pattern(name, steps) ? check(inner, steps) : null;
        if (found !== null) return within(`.${name}`, found);
      }
    }
    return null;
  };
};

const additionalProperties: Keyword = (sent, scope) => {
  const { properties: named, patternProperties: matched } = scope.siblings;
  const names = new Set(isRecord(named) ? Object.keys(named) : []);
  const patterns = matched === undefined ? [] : patternsOf(matched, scope);
  if (patterns === null) return null;
  const check = scope.inner(sent, "", "part");
  const problem = sent === false ? "is not a name that the schema allows" : null;
  return (value, steps) => {
    if (!isRecord(value)) return null;
    for (const [name, inner] of Object.entries(value)) {
      steps.spend(1);
      if (names.has(name) || patterns.some(([, pattern]) => pattern(name, steps))) continue;
      const found = problem === null ? check(inner, steps) : misfit(problem);
      if (found !== null) return within(`.${name}`, found);
    }
    return null;
  };
};

const propertyNames: Keyword = (sent, { inner }) => {
  const check = inner(sent, "", "part");
  return (value, steps) => {
    if (!isRecord(value)) return null;
    for (const name of Object.keys(value)) {
      steps.spend(1);
      const found = check(name, steps);
      if (found !== null) return within(`.${name}`, misfit(`has a name that does not fit: ${found.problem}`));
    }
    return null;
  };
};

/** The names that a list of texts has; null = it is no such list. */
function namesIn(sent: unknown): string[] | null {
  return Array.isArray(sent) && sent.every((name) => typeof name === "string") ? sent : null;
}

function requiring(names: readonly string[]): Check {
  return (value, steps) => {
    if (!isRecord(value)) return null;
    steps.spend(names.length);
    const missing = names.find((name) => !Object.hasOwn(value, name));
    return missing === undefined ? null : within(`.${missing}`, misfit("is missing"));
  };
}

const required: Keyword = (sent, { refuse }) => {
  const names = namesIn(sent);
  return names === null ? refuse("expected a list of names") : requiring(names);
};

const dependentRequired: Keyword = (sent, { refuse }) => {
  if (!isRecord(sent)) return refuse("expected an object of lists of names");
  const rules: [string, Check][] = [];
  for (const [name, list] of Object.entries(sent)) {
    const names = namesIn(list);
    if (names === null) return refuse("expected a list of names", `.${name}`);
    rules.push([name, requiring(names)]);
  }
  return whereNamed(rules);
};

const dependentSchemas: Keyword = (sent, scope) => {
  const rules = checksOf(sent, scope, "same");
  return rules === null ? null : whereNamed(rules);
};

/** Checks an object by the rules of the names that it has. */
function whereNamed(rules: readonly [string, Check][]): Check {
  return (value, steps) => {
    if (!isRecord(value)) return null;
    steps.spend(rules.length);
    for (const [name, check] of rules) {
      const found = Object.hasOwn(value, name) ? check(value, steps) : null;
      if (found !== null) return found;
    }
    return null;
  };
}

function nameCount(problem: string, holds: (count: number, bound: number) => boolean): Keyword {
  return (bound, { refuse }) => {
    if (!isCount(bound)) return refuse("expected a whole number from 0 on");
    return (value, steps) => {
      if (!isRecord(value)) return null;
      const { length } = Object.keys(value);
      steps.spend(length);
      return holds(length, bound) ? null : misfit(`${problem} ${bound} names, received ${length}`);
    };
  };
}

export const OBJECT_KEYWORDS: Readonly<Record<string, Keyword>> = {
  properties,
  patternProperties,
  additionalProperties,
  propertyNames,
  required,
  dependentRequired,
  dependentSchemas,
  minProperties: nameCount("expected at least", (count, bound) => count >= bound),
  maxProperties: nameCount("expected at most", (count, bound) => count <= bound),
};
