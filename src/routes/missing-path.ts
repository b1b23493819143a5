/** Paths that no route has: their methods are none, and their refusal names the path that was probably meant. */
import type { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import type { AppEnv } from "../context.ts";
import type { Reason } from "../errors.ts";
import { withoutToken } from "./dialects/path.ts";

/** The methods that a path answers to; none = there is no such path. */
export type MethodsOf = (path: string) => string[];

/** The methods of paths, from the routes themselves; built at the first miss, when all are mounted. */
export function methodsByPath(app: Hono<AppEnv>): MethodsOf {
  let router: TrieRouter<string> | null = null;
  return (path) => {
    if (router === null) {
      router = new TrieRouter<string>();
      // Middleware is registered for all methods; it makes no path exist.
      for (const route of app.routes) if (route.method !== "ALL") router.add("ALL", route.path, route.method);
    }
    const methods = new Set<string>();
    for (const [method] of router.match("ALL", path)[0]) {
      methods.add(method);
      if (method === "GET") methods.add("HEAD");
    }
    return [...methods];
  };
}

/** Why a request to a path that does not exist is refused. */
export function missingPath(method: string, path: string, methodsOf: MethodsOf): Reason {
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
