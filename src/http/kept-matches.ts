/** A router that looks for the handlers of a path without parameters once: the routes of calls have such paths. */
import type { Result, Router } from "hono/router";

export class KeptMatches<T> implements Router<T> {
  readonly name = "KeptMatches";
  readonly #router: Router<T>;
  /** What was found, by path and method. */
  readonly #kept: ReadonlyMap<string, Map<string, Result<T>>>;

  /**
   * @param router Answers for all other paths.
   * @param paths What is kept, one match for each method: clients may send any other path, and so would fill the memory.
   */
  constructor(router: Router<T>, paths: Iterable<string>) {
    this.#router = router;
    this.#kept = new Map(Array.from(paths, (path) => [path, new Map<string, Result<T>>()]));
  }

  add(method: string, path: string, handler: T): void {
    for (const matches of this.#kept.values()) matches.clear();
    this.#router.add(method, path, handler);
  }

  match(method: string, path: string): Result<T> {
    const matches = this.#kept.get(path);
    if (matches === undefined || !METHODS.has(method)) return this.#router.match(method, path);
    const known = matches.get(method);
    if (known !== undefined) return known;
    const found = this.#router.match(method, path);
    matches.set(method, found);
    return found;
  }
}

/** The methods of routes. Clients may send any other. */
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);
