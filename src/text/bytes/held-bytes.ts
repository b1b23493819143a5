/**
 * Bytes that requests hold in one memory, such as their bodies: large ones are refused while too many are held. Small
 * ones are counted and never refused: they are most requests, and each of them alone endangers nothing.
 */
import { RenewedSet } from "../../renewed/set.ts";

export type HeldBytesRules = {
  /** Most bytes that may be held when a large request wants more. */
  bytesMax: number;
  /** Fewest bytes of a large request. */
  largeBytesMin: number;
  /** Time after which bytes count as returned, ms: a request that the runtime has dropped returns nothing. */
  ageMsMax: number;
};

/** The bytes of one request. */
export type Hold = {
  /** Holds so many bytes in total from now on. False, and nothing changes, if they do not fit. */
  take: (totalBytes: number, nowMs: number) => boolean;
  /** Returns all of them; again changes nothing. */
  release: () => void;
};

type Held = { bytes: number; sinceMs: number };

export class HeldBytes {
  readonly #rules: HeldBytesRules;
  readonly #held = new RenewedSet<Held>();
  #bytes = 0;

  constructor(rules: HeldBytesRules) {
    this.#rules = rules;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A request that holds nothing yet. */
  hold(): Hold {
    const held: Held = { bytes: 0, sinceMs: 0 };
    return {
      take: (totalBytes, nowMs) => this.#take(held, totalBytes, nowMs),
      release: () => this.#release(held),
    };
  }

  #take(held: Held, totalBytes: number, nowMs: number): boolean {
    if (!this.#fits(totalBytes - held.bytes, totalBytes)) {
      this.#dropOld(nowMs);
      if (!this.#fits(totalBytes - held.bytes, totalBytes)) return false;
    }
    this.#bytes += totalBytes - held.bytes;
    if (held.bytes === 0) held.sinceMs = nowMs;
    held.bytes = totalBytes;
    this.#held.add(held);
    return true;
  }

  #fits(moreBytes: number, totalBytes: number): boolean {
    return totalBytes < this.#rules.largeBytesMin || this.#bytes + moreBytes <= this.#rules.bytesMax;
  }

  #dropOld(nowMs: number): void {
    for (const held of this.#held) if (nowMs - held.sinceMs >= this.#rules.ageMsMax) this.#release(held);
  }

  #release(held: Held): void {
    this.#held.delete(held);
    this.#bytes -= held.bytes;
    held.bytes = 0;
  }
}
