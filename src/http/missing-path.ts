/** Paths that no route has: their methods are none, and their refusal names the path that was probably meant. */
import { TrieRouter } from "hono/router/trie-router";
import { patternOf, type Method } from "../contract/routes/record.ts";
import { ROUTES } from "../contract/routes/table.ts";
import type { Reason } from "../errors.ts";
import { withoutToken } from "./dialect-path.ts";

/** The methods of all paths by the table; read at the first miss. */
let router: TrieRouter<{ method: Method; pattern: string }> | null = null;

/** The methods that a path answers to; none = there is no such path. A path that a route names in full has that route's only. */
export function methodsOf(path: string): string[] {
  router ??= allPaths();
  const methods = new Set<string>();
  const fitting = router.match("ALL", path)[0].map(([route]) => route);
  const named = fitting.filter(({ pattern }) => pattern === path);
  for (const { method } of named.length > 0 ? named : fitting) {
    methods.add(method);
    if (method === "GET") methods.add("HEAD");
  }
  return [...methods];
}

function allPaths(): TrieRouter<{ method: Method; pattern: string }> {
  const paths = new TrieRouter<{ method: Method; pattern: string }>();
  for (const route of ROUTES) paths.add("ALL", patternOf(route), { method: route.method, pattern: patternOf(route) });
  return paths;
}

/** Why a request to a path that does not exist is refused. */
export function missingPath(method: string, path: string): Reason {
  const meant = neighboursOf(path).find((neighbour) => methodsOf(neighbour).length > 0);
  const hint = meant === undefined ? "/docs lists the routes" : `did you mean ${withoutToken(meant)}?`;
  return { reason: "not_found", what: `${method} ${withoutToken(path)}`, hint };
}

/**
 * Paths that differ from a path as far as a wrong base URL does: a slash too much, or `/v1` missing or too much. They are looked
 * up, so they are few.
 */
function neighboursOf(path: string): string[] {
  const tidy = path.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return [tidy, `/v1${tidy}`, tidy.replace(/^\/v1(?=\/)/, "")];
}
