/** Parsed pages of the slots being dispatched, in bounded memory: the least recently used are dropped first. */
import { readFacts } from "../../../src/engine/call-page.ts";
import { groupSeqOf, indexOf, type SlotFacts } from "../../../src/engine/slot.ts";
import { PAGE_CACHE_BYTES_MAX } from "../../../src/limits.ts";
import type { StoredPage } from "./records.ts";

type CachedPage = { firstIndex: number; facts: SlotFacts[]; calls: string; lines: string[] | null };

export class PageCache {
  readonly #load: (slotId: number) => StoredPage | null;
  readonly #modelsOf: (groupSeq: number) => readonly (string | null)[];
  /** By slot id of the page's first slot, least recently used first. */
  #pages = new Map<number, CachedPage>();
  #current: { page: CachedPage; firstSlot: number } | null = null;
  #chars = 0;

  constructor(load: (slotId: number) => StoredPage | null, modelsOf: (groupSeq: number) => readonly (string | null)[]) {
    this.#load = load;
    this.#modelsOf = modelsOf;
  }

  facts(slotId: number): SlotFacts {
    const { page, firstSlot } = this.#pageOf(slotId);
    const facts = page.facts[slotId - firstSlot];
    if (facts === undefined) throw new Error(`slot ${slotId} is in no page`);
    return facts;
  }

  /** The body of a slot's call, as JSON text. */
  call(slotId: number): string {
    const { page, firstSlot } = this.#pageOf(slotId);
    page.lines ??= page.calls.split("\n");
    const line = page.lines[slotId - firstSlot];
    if (line === undefined) throw new Error(`slot ${slotId} is in no page`);
    return line;
  }

  #pageOf(slotId: number): { page: CachedPage; firstSlot: number } {
    const current = this.#current;
    if (current !== null && slotId >= current.firstSlot && slotId < current.firstSlot + current.page.facts.length) {
      return current;
    }
    for (const [firstSlot, page] of this.#pages) {
      if (slotId < firstSlot || slotId >= firstSlot + page.facts.length) continue;
      this.#pages.delete(firstSlot);
      this.#pages.set(firstSlot, page);
      this.#current = { page, firstSlot };
      return this.#current;
    }
    return this.#read(slotId);
  }

  #read(slotId: number): { page: CachedPage; firstSlot: number } {
    const stored = this.#load(slotId);
    if (stored === null) throw new Error(`slot ${slotId} is in no page`);
    const firstSlot = slotId - indexOf(slotId) + stored.firstIndex;
    return this.keep(firstSlot, stored, this.#modelsOf(groupSeqOf(slotId)));
  }

  /** Caches a page that was just stored or read. */
  keep(
    firstSlot: number,
    stored: StoredPage,
    models: readonly (string | null)[],
  ): { page: CachedPage; firstSlot: number } {
    const facts = readFacts(stored.facts, models);
    const page = { firstIndex: stored.firstIndex, facts, calls: stored.calls, lines: null };
    this.#chars += page.calls.length - (this.#pages.get(firstSlot)?.calls.length ?? 0);
    this.#pages.delete(firstSlot);
    this.#pages.set(firstSlot, page);
    for (const [oldest, { calls }] of this.#pages) {
      if (this.#chars <= PAGE_CACHE_BYTES_MAX || oldest === firstSlot) break;
      this.#pages.delete(oldest);
      this.#chars -= calls.length;
    }
    this.#current = { page, firstSlot };
    return this.#current;
  }

  /** Forgets everything: nothing is being dispatched. */
  clear(): void {
    this.#pages.clear();
    this.#current = null;
    this.#chars = 0;
  }
}
