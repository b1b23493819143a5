/** The application's router finds what hono's trie finds, and looks once for a path without parameters. */
import { TrieRouter } from "hono/router/trie-router";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FixedPaths } from "../../../src/routes/fixed-paths.ts";

const ROUTES: readonly (readonly [method: string, path: string])[] = [
  ["ALL", "/*"],
  ["POST", "/query"],
  ["GET", "/runs"],
  ["POST", "/runs"],
  ["GET", "/runs/:id"],
  ["POST", "/dag/validate"],
  ["POST", "/dag/:id/retry"],
  ["GET", "/dag/:id{[^v/][^/]*}"],
  ["GET", "/dag/:id/outline"],
];

const PATHS = [
  ...["/query", "/runs", "/runs/r1", "/runs/:id", "/dag/validate", "/dag/g1", "/dag/g1/retry", "/dag/g1/outline"],
  ...["/", "/nothing", "/query/", "/*"],
];

afterEach(() => void vi.restoreAllMocks());

function routers(): { ours: FixedPaths<string>; trie: TrieRouter<string> } {
  const ours = new FixedPaths<string>();
  const trie = new TrieRouter<string>();
  for (const [method, path] of ROUTES) {
    ours.add(method, path, `${method} ${path}`);
    trie.add(method, path, `${method} ${path}`);
  }
  return { ours, trie };
}

describe("FixedPaths", () => {
  it("finds the handlers and parameters that the trie finds, the first time and later", () => {
    const { ours, trie } = routers();
    for (const _ of ["first", "later"]) {
      for (const method of ["GET", "POST", "DELETE", "PROPFIND"]) {
        for (const path of PATHS)
          expect(ours.match(method, path), `${method} ${path}`).toEqual(trie.match(method, path));
      }
    }
  });

  it("looks once for a route's path without parameters, and keeps nothing of other paths and methods", () => {
    const looked = vi.spyOn(TrieRouter.prototype, "match");
    const { ours } = routers();
    for (let request = 0; request < 3; request += 1) {
      ours.match("POST", "/query");
      ours.match("GET", "/runs/r1");
      ours.match("PROPFIND", "/query");
    }
    const looks = looked.mock.calls.map(([method, path]) => `${method} ${path}`);
    expect(looks.filter((look) => look === "POST /query")).toHaveLength(1);
    expect(looks.filter((look) => look === "GET /runs/r1")).toHaveLength(3);
    expect(looks.filter((look) => look === "PROPFIND /query")).toHaveLength(3);
  });

  it("finds a route that is added after a look", () => {
    const { ours } = routers();
    ours.match("POST", "/query");
    ours.add("POST", "/query", "second");
    expect(ours.match("POST", "/query")[0].map(([handler]) => handler)).toEqual(["ALL /*", "POST /query", "second"]);
  });
});
