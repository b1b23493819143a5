/** The router that keeps matches: it answers as the router behind it, and asks it once for a path without parameters. */
import { TrieRouter } from "hono/router/trie-router";
import { describe, expect, it } from "vitest";
import { KeptMatches } from "../../../src/http/kept-matches.ts";

class Counted extends TrieRouter<string> {
  matches = 0;

  override match(...asked: Parameters<TrieRouter<string>["match"]>): ReturnType<TrieRouter<string>["match"]> {
    this.matches += 1;
    return super.match(...asked);
  }
}

function routers(): { inner: Counted; kept: KeptMatches<string> } {
  const inner = new Counted();
  const kept = new KeptMatches(inner, ["/query"]);
  for (const [method, path] of [
    ["ALL", "*"],
    ["POST", "/query"],
    ["GET", "/runs/:id"],
  ] as const)
    kept.add(method, path, `${method} ${path}`);
  return { inner, kept };
}

describe("a router that keeps matches", () => {
  it("answers as the router behind it, whatever the path and the method", () => {
    const { inner, kept } = routers();
    for (const path of ["/query", "/runs/a", "/runs/b", "/nowhere"])
      for (const method of ["GET", "POST", "BREW"])
        for (let time = 0; time < 2; time++) expect(kept.match(method, path)).toEqual(inner.match(method, path));
  });

  it("asks once for each method of a path that it keeps, and each time for any other", () => {
    const { inner, kept } = routers();
    const asks = (method: string, path: string): number => {
      inner.matches = 0;
      for (let time = 0; time < 3; time++) kept.match(method, path);
      return inner.matches;
    };
    expect(asks("POST", "/query")).toBe(1);
    expect(asks("GET", "/query")).toBe(1);
    expect(asks("BREW", "/query")).toBe(3);
    expect(asks("GET", "/runs/a")).toBe(3);
    expect(asks("POST", "/elsewhere")).toBe(3);
  });

  it("knows a route that is added later", () => {
    const { kept } = routers();
    const before = kept.match("POST", "/query")[0].length;
    kept.add("POST", "/query", "another");
    expect(kept.match("POST", "/query")[0]).toHaveLength(before + 1);
  });
});
