/** Keywords about lists. */
import { canonicalJson } from "../canonical.ts";
import { misfit, within, type Check, type Keyword } from "../types.ts";
import { isCount } from "./values.ts";

/** Checks the elements from an index on. */
function elementsFrom(first: number, check: Check): Check {
  return (value, steps) => {
    if (!Array.isArray(value)) return null;
    steps.spend(value.length);
    for (let index = first; index < value.length; index++) {
      const found = check(value[index], steps);
      if (found !== null) return within(`[${index}]`, found);
    }
    return null;
  };
}

const prefixItems: Keyword = (sent, { inner, refuse }) => {
  if (!Array.isArray(sent)) return refuse("expected a list of schemas");
  const checks = sent.map((schema, index) => inner(schema, `[${index}]`, "part"));
  return (value, steps) => {
    if (!Array.isArray(value)) return null;
    steps.spend(checks.length);
    for (const [index, check] of checks.slice(0, value.length).entries()) {
      const found = check(value[index], steps);
      if (found !== null) return within(`[${index}]`, found);
    }
    return null;
  };
};

/** `items`; a list of schemas is how drafts before 2020-12 spell `prefixItems`. */
const items: Keyword = (sent, scope) => {
  if (Array.isArray(sent)) return prefixItems(sent, scope);
  const { prefixItems: prefix } = scope.siblings;
  return elementsFrom(Array.isArray(prefix) ? prefix.length : 0, scope.inner(sent, "", "part"));
};

/** What drafts before 2020-12 have for the elements after those of a list in `items`. */
const additionalItems: Keyword = (sent, { siblings, inner }) => {
  if (!Array.isArray(siblings["items"])) return null;
  return elementsFrom(siblings["items"].length, inner(sent, "", "part"));
};

const contains: Keyword = (sent, { siblings, inner, refuse }) => {
  const { minContains: least = 1, maxContains: most = Infinity } = siblings;
  if (!isCount(least) || (most !== Infinity && !isCount(most))) {
    return refuse("is used with a minContains or maxContains that is not a whole number");
  }
  const check = inner(sent, "", "part");
  return (value, steps) => {
    if (!Array.isArray(value)) return null;
    let found = 0;
    steps.spend(value.length);
    for (const element of value) if (check(element, steps) === null) found += 1;
    if (found < least) return misfit(`expected at least ${least} elements that fit contains, received ${found}`);
    return found > most ? misfit(`expected at most ${most} elements that fit contains, received ${found}`) : null;
  };
};

function elementCount(problem: string, holds: (count: number, bound: number) => boolean): Keyword {
  return (bound, { refuse }) => {
    if (!isCount(bound)) return refuse("expected a whole number from 0 on");
    return (value) =>
      !Array.isArray(value) || holds(value.length, bound)
        ? null
        : misfit(`${problem} ${bound} elements, received ${value.length}`);
  };
}

const uniqueItems: Keyword = (sent, { refuse }) => {
  if (typeof sent !== "boolean") return refuse("expected true or false");
  if (!sent) return null;
  return (value, steps) => {
    if (!Array.isArray(value)) return null;
    const seen = new Map<string, number>();
    for (const [index, element] of value.entries()) {
      const text = canonicalJson(element, steps);
      const first = seen.get(text);
      if (first !== undefined) return within(`[${index}]`, misfit(`is the same as the element ${first}`));
      seen.set(text, index);
    }
    return null;
  };
};

export const ARRAY_KEYWORDS: Readonly<Record<string, Keyword>> = {
  prefixItems,
  items,
  additionalItems,
  contains,
  minItems: elementCount("expected at least", (count, bound) => count >= bound),
  maxItems: elementCount("expected at most", (count, bound) => count <= bound),
  uniqueItems,
};
