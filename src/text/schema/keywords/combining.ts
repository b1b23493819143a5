/** Keywords that combine schemas, and references. */
import { misfit, type Check, type Keyword, type Misfit, type SchemaScope, type StepCounter } from "../types.ts";

/** The schemas of a list, all of which apply to the same value. */
function checksOf(sent: unknown, { inner, refuse }: SchemaScope): Check[] | null {
  if (!Array.isArray(sent) || sent.length === 0) return refuse("expected a list of schemas");
  return sent.map((schema, index) => inner(schema, `[${index}]`, "same"));
}

const allOf: Keyword = (sent, scope) => {
  const checks = checksOf(sent, scope);
  if (checks === null) return null;
  return (value, steps) => {
    for (const check of checks) {
      const found = check(value, steps);
      if (found !== null) return found;
    }
    return null;
  };
};

/** How many of several schemas a value fits, and where the one that it almost fits differs. */
function fitting(checks: readonly Check[], value: unknown, steps: StepCounter, enough: number) {
  let count = 0;
  let nearest: Misfit | null = null;
  for (const check of checks) {
    const found = check(value, steps);
    if (found === null) count += 1;
    // The choice that got furthest into the value is most likely the one that was meant.
    else if (nearest === null || found.path.length > nearest.path.length) nearest = found;
    if (count >= enough) break;
  }
  return { count, nearest };
}

function fitsNone(choices: number, nearest: Misfit | null): Misfit {
  const { path, problem } = nearest ?? misfit("");
  return { path, problem: choices === 1 ? problem : `fits none of ${choices} choices; the nearest one: ${problem}` };
}

const anyOf: Keyword = (sent, scope) => {
  const checks = checksOf(sent, scope);
  if (checks === null) return null;
  return (value, steps) => {
    const { count, nearest } = fitting(checks, value, steps, 1);
    return count === 1 ? null : fitsNone(checks.length, nearest);
  };
};

const oneOf: Keyword = (sent, scope) => {
  const checks = checksOf(sent, scope);
  if (checks === null) return null;
  return (value, steps) => {
    const { count, nearest } = fitting(checks, value, steps, 2);
    if (count === 1) return null;
    return count === 0
      ? fitsNone(checks.length, nearest)
      : misfit("fits several choices of oneOf; expected exactly one");
  };
};

const not: Keyword = (sent, { inner }) => {
  const check = inner(sent, "", "same");
  return (value, steps) => (check(value, steps) === null ? misfit("fits a schema that it must not fit") : null);
};

/** `if` with `then` and `else`, which assert nothing alone. */
const condition: Keyword = (sent, { inner, siblings }) => {
  const applies = inner(sent, "", "same");
  const branch = (name: string): Check | null =>
    siblings[name] === undefined ? null : inner(siblings[name], ` with ${name}`, "same");
  const then = branch("then");
  const otherwise = branch("else");
  return (value, steps) => (applies(value, steps) === null ? then : otherwise)?.(value, steps) ?? null;
};

const reference: Keyword = (sent, { reference: follow, refuse }) =>
  typeof sent === "string" ? follow(sent) : refuse("expected a text");

export const COMBINING_KEYWORDS: Readonly<Record<string, Keyword>> = {
  allOf,
  anyOf,
  oneOf,
  not,
  if: condition,
  $ref: reference,
};
