/** What parsing an entry of UPSTREAMS ends as, and how its faults are named. */
import type * as z from "zod";
import { patternError } from "./fields.ts";
import type { Upstream } from "./types.ts";

/** The upstreams in the order listed, or the path of the first wrong field and what is expected there. */
export type ParsedUpstreams = { ok: true; upstreams: Upstream[] } | { ok: false; path: string; message: string };

/** An entry of UPSTREAMS; `secret:NAME` in a key or header reads `vars[NAME]`. */
export type Entry = { name: string; fields: unknown; vars: Record<string, unknown> };

/** The fault that a kind's schema found. */
export function wrongIssue(name: string, error: z.ZodError): ParsedUpstreams & { ok: false } {
  const issue = error.issues[0];
  if (issue === undefined) return wrong([name], "is not valid");
  const path = [name, ...issue.path];
  if (issue.code === "unrecognized_keys") return wrong([...path, ...issue.keys.slice(0, 1)], "is not a known field");
  if (issue.code === "invalid_key") return wrong(path, patternError);
  return wrong(path, issue.message);
}

/** A fault at a path below UPSTREAMS. */
export function wrong(path: readonly PropertyKey[], message: string): ParsedUpstreams & { ok: false } {
  return { ok: false, path: ["UPSTREAMS", ...path.map(String)].join("."), message };
}
