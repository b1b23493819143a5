/** The router of the application: hono's trie, which keeps the handlers of each path without parameters. */
import type { Result, Router } from "hono/router";
import { TrieRouter } from "hono/router/trie-router";

/**
 * Every request passes some middleware, which the trie collects and sorts anew for each; most requests have one of a few
 * paths. hono's router of regular expressions would be as fast, but refuses `/dag/validate` beside `/dag/:id/retry`.
 */
export class FixedPaths<Handler> implements Router<Handler> {
  readonly name = "FixedPaths";
  readonly #trie = new TrieRouter<Handler>();
  /** Paths and methods of routes. Nothing is kept of others: clients could send any number of them. */
  readonly #paths = new Set<string>();
  readonly #methods = new Set<string>();
  readonly #found = new Map<string, Result<Handler>>();

  add(method: string, path: string, handler: Handler): void {
    this.#trie.add(method, path, handler);
    this.#methods.add(method);
    if (!/[:*{]/.test(path)) this.#paths.add(path);
    this.#found.clear();
  }

  match(method: string, path: string): Result<Handler> {
    if (!this.#paths.has(path) || !this.#methods.has(method)) return this.#trie.match(method, path);
    const name = `${method} ${path}`;
    const known = this.#found.get(name);
    if (known !== undefined) return known;
    const found = this.#trie.match(method, path);
    this.#found.set(name, found);
    return found;
  }
}
