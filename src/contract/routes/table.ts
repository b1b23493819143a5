/**
 * The table of routes: mounts, bounds of bodies, allowed methods, the OpenAPI document and the links of `GET /` come from it. Families
 * stand in the order of the reference page: what a newcomer uses first comes first.
 */
import { calls } from "./calls.ts";
import { contexts } from "./contexts.ts";
import { dialects } from "./dialects.ts";
import { discovery } from "./discovery.ts";
import { files } from "./files.ts";
import { groups } from "./groups.ts";
import { log } from "./log.ts";
import { mcp } from "./mcp.ts";
import { operator } from "./operator.ts";
import { probes } from "./probe.ts";
import { pull } from "./pull.ts";
import { METHODS, type Family, type Method } from "./record.ts";
import { runs } from "./runs.ts";
import { tools } from "./tools.ts";
import { v1 } from "./v1.ts";

const TABLE = [
  calls,
  contexts,
  groups,
  runs,
  log,
  v1,
  files,
  tools,
  mcp,
  pull,
  dialects,
  operator,
  discovery,
  probes,
] as const;

/** The families, each with its routes in their order. */
export const FAMILIES: readonly Family[] = TABLE;

type KeyOf<Each> = Each extends Family<infer Key> ? Key : never;

/** The names of all routes. */
export type RouteName = KeyOf<(typeof TABLE)[number]>;

/** What the name of a route says. */
export function methodAndPath(name: string): { method: Method; path: string } {
  const method = METHODS.find((each) => name.startsWith(`${each} `));
  if (method === undefined) throw new Error(`${name} names no method`);
  return { method, path: name.slice(method.length + 1) };
}
