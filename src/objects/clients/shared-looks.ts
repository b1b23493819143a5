/** Looks that many readers want at the same time: each is made once per key and term, and all of them get it. */
export type SharedLooksDeps<T> = {
  /** How long a result is given to further readers, ms; 0 = only to those who wait for it already. */
  termMs: (result: T) => number;
  /** Keys whose looks are kept. */
  keysMax: number;
  now: () => number;
};

/** `untilMs` null = it is being made. */
type Look<T> = { look: Promise<T>; untilMs: number | null };

export class SharedLooks<T> {
  readonly #deps: SharedLooksDeps<T>;
  /** Oldest first. */
  readonly #looks = new Map<string, Look<T>>();

  constructor(deps: SharedLooksDeps<T>) {
    this.#deps = deps;
  }

  /** The look of this key, at most one term old. One that fails is not kept. */
  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.#looks.get(key);
    if (known !== undefined && (known.untilMs === null || this.#deps.now() < known.untilMs)) return known.look;
    const made: Look<T> = { look: make(), untilMs: null };
    this.#looks.delete(key);
    this.#looks.set(key, made);
    made.look.then(
      (result) => (made.untilMs = this.#deps.now() + this.#deps.termMs(result)),
      () => this.#looks.get(key) === made && this.#looks.delete(key),
    );
    for (const oldest of this.#looks.keys()) {
      if (this.#looks.size <= this.#deps.keysMax) break;
      this.#looks.delete(oldest);
    }
    return made.look;
  }
}
