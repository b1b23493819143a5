import { SHARED_LOOK_WAIT_MS } from "../../limits.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/**
 * Looks that many readers want at the same time: each is made once per key and term, and all of them get it. The request that
 * makes a look may be cancelled, and then the look never ends; and the runtime takes a request that waits for nothing of its
 * own to be stuck. So each reader waits beside a timer of its own, and makes the look itself if it does not come.
 */
export type SharedLooksDeps<T> = {
  /** How long a result is given to further readers, ms; 0 = only to those who wait for it already. */
  termMs: (result: T) => number;
  /** Keys whose looks are kept. */
  keysMax: number;
  now: () => number;
  /** Waits this time; `signal` ends the wait. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** `untilMs` null = it is being made. */
type Look<T> = { look: Promise<T>; untilMs: number | null };

export class SharedLooks<T> {
  readonly #deps: SharedLooksDeps<T>;
  readonly #looks: BoundedMap<string, Look<T>>;

  constructor(deps: SharedLooksDeps<T>) {
    this.#deps = deps;
    this.#looks = new BoundedMap(deps.keysMax);
  }

  /** The look of this key, at most one term old. One that fails is not kept. */
  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.#looks.get(key);
    if (known !== undefined && known.untilMs !== null && this.#deps.now() < known.untilMs) return known.look;
    if (known !== undefined && known.untilMs === null) return this.#others(key, known, make);
    return this.#make(key, make);
  }

  /** The look that another request makes; after a while, one that this request makes. */
  async #others(key: string, known: Look<T>, make: () => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const late = this.#deps.sleep(SHARED_LOOK_WAIT_MS, ended.signal).then(() => null);
    try {
      const look = await Promise.race([known.look.then((result) => ({ result })), late]);
      if (look !== null) return look.result;
    } finally {
      ended.abort();
    }
    return this.#looks.get(key) === known ? this.#make(key, make) : this.get(key, make);
  }

  #make(key: string, make: () => Promise<T>): Promise<T> {
    const made: Look<T> = { look: make(), untilMs: null };
    this.#looks.set(key, made);
    made.look.then(
      (result) => (made.untilMs = this.#deps.now() + this.#deps.termMs(result)),
      () => this.#looks.get(key) === made && this.#looks.delete(key),
    );
    return made.look;
  }
}
