/**
 * A digest of 64 bits of the beginning of a prompt: two of FNV-1a's with different primes. Texts that meet by intent make their own
 * run's calls wait for each other once, and nothing else.
 */
export class PrefixDigest {
  #low = 0x811c9dc5;
  #high = 0x9e3779b9;

  /** Adds a text. Texts are kept apart: "ab", "c" is not "a", "bc". */
  add(text: string): void {
    let low = this.#low;
    let high = this.#high;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      low = Math.imul(low ^ unit, 0x01000193);
      high = Math.imul(high ^ unit, 0x85ebca6b);
    }
    this.#low = low;
    this.#high = high;
    this.endPart(text.length);
  }

  /** Adds a range of bytes to the part that `endPart` ends. */
  addBytes(bytes: Uint8Array, start: number, end: number): void {
    let low = this.#low;
    let high = this.#high;
    for (let at = start; at < end; at++) {
      const unit = bytes[at] ?? 0;
      low = Math.imul(low ^ unit, 0x01000193);
      high = Math.imul(high ^ unit, 0x85ebca6b);
    }
    this.#low = low;
    this.#high = high;
  }

  /** Keeps what was added apart from what follows. */
  endPart(length: number): void {
    this.#low = Math.imul(this.#low ^ length, 0x01000193);
    this.#high = Math.imul(this.#high ^ length, 0x85ebca6b) ^ (this.#high >>> 15);
  }

  name(): string {
    return [this.#low, this.#high].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

/** The fields that say: cache the prompt up to this block. */
export const CACHE_MARKS: readonly string[] = ["cache_control", "prompt_cache_breakpoint"];
