/**
 * The texts of contexts that an isolate holds while it sends them: each is read once for all calls that need it at the same
 * time, and kept while there is room. A call whose text does not fit waits until others are sent.
 */

export type HeldTextsRules = {
  /** Most bytes that are held while a further text is wanted. */
  bytesMax: number;
  /** What holding a text takes beside its own bytes. Without it, any number of tiny texts would fit. */
  entryBytes: number;
  /** Time after which a text that no call uses is dropped, ms. */
  idleMsMax: number;
  /** Time after which a text counts as sent, ms: a request that the runtime has dropped never says so. */
  ageMsMax: number;
};

/** A text for one call. `release`: it is sent. */
export type HeldText = { bytes: Uint8Array; release: () => void };

type Entry = {
  loading: Promise<Uint8Array | null>;
  /** As announced, then as loaded, with what holding it takes. */
  bytes: number;
  /** Calls that send it. */
  users: number;
  usedMs: number;
};

export class HeldTexts {
  readonly #rules: HeldTextsRules;
  readonly #now: () => number;
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #bytesPeak = 0;
  #waiting: (() => void)[] = [];

  constructor(rules: HeldTextsRules, now: () => number) {
    this.#rules = rules;
    this.#now = now;
  }

  /** Bytes held now, and the most that ever were. */
  get held(): { bytes: number; bytesPeak: number } {
    return { bytes: this.#bytes, bytesPeak: this.#bytesPeak };
  }

  /**
   * A text by its name, of about `textBytes`; null if `load` finds none. Rejects if `load` does: then the next call tries once
   * more.
   */
  async take(name: string, textBytes: number, load: () => Promise<Uint8Array | null>): Promise<HeldText | null> {
    const bytes = textBytes + this.#rules.entryBytes;
    this.#dropIdle();
    for (;;) {
      const known = this.#entries.get(name);
      if (known !== undefined) return await this.#use(name, known);
      if (this.#makeRoom(bytes)) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const entry: Entry = { loading: load(), bytes, users: 0, usedMs: this.#now() };
    this.#entries.set(name, entry);
    this.#grow(bytes);
    return await this.#use(name, entry);
  }

  async #use(name: string, entry: Entry): Promise<HeldText | null> {
    entry.users += 1;
    entry.usedMs = this.#now();
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      entry.users -= 1;
      this.#wake();
    };
    try {
      const text = await entry.loading;
      if (text === null) {
        this.#forget(name, entry);
        release();
        return null;
      }
      const bytes = text.length + this.#rules.entryBytes;
      this.#grow(bytes - entry.bytes);
      entry.bytes = bytes;
      return { bytes: text, release };
    } catch (error) {
      this.#forget(name, entry);
      release();
      throw error;
    }
  }

  #dropIdle(): void {
    const usedBeforeMs = this.#now() - this.#rules.idleMsMax;
    for (const [name, entry] of this.#entries) {
      if (entry.usedMs > usedBeforeMs) return;
      if (entry.users === 0) this.#forget(name, entry);
    }
  }

  /** Drops texts that nobody sends until `bytes` fit. One alone always fits. */
  #makeRoom(bytes: number): boolean {
    for (const [name, entry] of this.#entries) {
      if (this.#bytes + bytes <= this.#rules.bytesMax) return true;
      if (entry.users === 0 || this.#now() - entry.usedMs >= this.#rules.ageMsMax) this.#forget(name, entry);
    }
    return this.#entries.size === 0 || this.#bytes + bytes <= this.#rules.bytesMax;
  }

  #forget(name: string, entry: Entry): void {
    if (this.#entries.get(name) !== entry) return;
    this.#entries.delete(name);
    this.#grow(-entry.bytes);
    entry.bytes = 0;
    this.#wake();
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#bytesPeak = Math.max(this.#bytesPeak, this.#bytes);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
