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
import { bodyBytesMax, type Family, type Route } from "./record.ts";
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

type NameOf<Each> = Each extends Family<infer Name> ? Name : never;

/** The names of all routes. */
export type RouteName = NameOf<(typeof TABLE)[number]>;

/** All routes. */
export const ROUTES: readonly Route<RouteName>[] = TABLE.flatMap<Route<RouteName>>(({ routes }) => routes);

/** How many bytes the body of each route may have, by the route's name: those that take none are not here. */
export const BODY_BYTES: Readonly<Record<string, number>> = Object.fromEntries(
  ROUTES.flatMap((route) => {
    const bytesMax = bodyBytesMax(route);
    return bytesMax === null ? [] : [[route.name, bytesMax]];
  }),
);
