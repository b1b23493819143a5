/**
 * UPSTREAMS, ROUTES and PANEL may be split: Cloudflare stores at most 5 KB in one variable. `UPSTREAMS`, `UPSTREAMS_1` …
 * `UPSTREAMS_32` are objects, or JSON texts of objects. They are merged in this order, at every level: each part adds fields to
 * what earlier parts have. A field that two parts set is refused, because one of them would be lost silently.
 */
import { describeFault, jsonFault } from "../../text/json/validate.ts";
import { isRecord } from "../../text/json/record.ts";
import { CONFIG_PARTS_MAX } from "../../limits.ts";

/** The variables that may be split. */
export const SPLIT_VARIABLES = ["UPSTREAMS", "ROUTES", "PANEL"] as const;
export type SplitVariable = (typeof SPLIT_VARIABLES)[number];

/** The merged value, undefined if no part is set; or the variable, or the field in it, that is wrong. */
export type Combined = { ok: true; value: unknown } | { ok: false; path: string; message: string };

/** The variable that a name is a part of: itself, or one with a number. Null for all other names. */
export function splitVariableOf(name: string): SplitVariable | null {
  return SPLIT_VARIABLES.find((each) => name === each || partNumber(each, name) !== null) ?? null;
}

/** Merges the parts of a variable. An empty text counts as not set. */
export function combinedParts(variable: SplitVariable, vars: Record<string, unknown>): Combined {
  const numbered = Object.keys(vars).filter((name) => isSet(vars[name]) && partNumber(variable, name) !== null);
  const wrongNumber = numbered.find((name) => !isPartNumber(partNumber(variable, name) ?? ""));
  if (wrongNumber !== undefined) {
    return {
      ok: false,
      path: wrongNumber,
      message: `is no part: parts are ${variable}_1 to ${variable}_${CONFIG_PARTS_MAX}`,
    };
  }
  const inOrder = numbered.toSorted((a, b) => Number(partNumber(variable, a)) - Number(partNumber(variable, b)));
  const names = isSet(vars[variable]) ? [variable, ...inOrder] : inOrder;
  let combined: unknown = undefined;
  for (const name of names) {
    const read = jsonOf(vars[name]);
    if (!read.ok) return { ok: false, path: name, message: read.message };
    if (names.length === 1 && name === variable) return { ok: true, value: read.value };
    if (!isRecord(read.value)) return { ok: false, path: name, message: "must be an object, or JSON text of one" };
    const merged = mergedObjects(isRecord(combined) ? combined : {}, read.value, name);
    if (!merged.ok) return merged;
    combined = merged.value;
  }
  return { ok: true, value: combined };
}

function partNumber(variable: SplitVariable, name: string): string | null {
  const number = name.startsWith(`${variable}_`) ? name.slice(variable.length + 1) : "";
  return /^\d+$/.test(number) ? number : null;
}

function isPartNumber(text: string): boolean {
  return /^[1-9]\d?$/.test(text) && Number(text) <= CONFIG_PARTS_MAX;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

type Merged = { ok: true; value: Record<string, unknown> } | { ok: false; path: string; message: string };

/** `Object.fromEntries` also keeps a field named `__proto__` as a field. */
function mergedObjects(earlier: Record<string, unknown>, later: Record<string, unknown>, path: string): Merged {
  const fields = new Map(Object.entries(earlier));
  for (const [name, value] of Object.entries(later)) {
    const before = fields.get(name);
    if (before === undefined) {
      fields.set(name, value);
      continue;
    }
    const field = `${path}.${name}`;
    if (!isRecord(before) || !isRecord(value)) {
      return { ok: false, path: field, message: "is set in an earlier part too; set each field in one part" };
    }
    const merged = mergedObjects(before, value, field);
    if (!merged.ok) return merged;
    fields.set(name, merged.value);
  }
  return { ok: true, value: Object.fromEntries(fields) };
}

/** Objects come from wrangler.toml, JSON texts from a secret or an env file. */
function jsonOf(value: unknown): { ok: true; value: unknown } | { ok: false; message: string } {
  if (typeof value !== "string") return { ok: true, value };
  try {
    return { ok: true, value: JSON.parse(value) };
  } catch {
    const bytes = new TextEncoder().encode(value);
    const fault = jsonFault(bytes);
    return { ok: false, message: fault === null ? "is not JSON" : describeFault(bytes, fault) };
  }
}
