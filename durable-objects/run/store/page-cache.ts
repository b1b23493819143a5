/**
 * Parsed pages of the slots being dispatched, in bounded memory: the least recently used are dropped first. Pages that the
 * present turn stores stay until it has, because its dispatch cannot read them: one request has at most a few megabytes.
 */
import { placeOf, readFacts, type BodyPlace } from "../../../src/engine/call-page.ts";
import { groupSeqOf, indexOf, type SlotFacts } from "../../../src/engine/slot.ts";
import { CALL_PAGE_SLOTS_MAX, PAGE_CACHE_BYTES_MAX } from "../../../src/limits.ts";
import type { StoredPage } from "./records.ts";

/** `place` null = the page has its bodies. `chars`: about what it takes in memory. */
type CachedPage = {
  firstIndex: number;
  facts: SlotFacts[];
  calls: string;
  lines: string[] | null;
  place: BodyPlace | null;
  chars: number;
};

/** Characters that the facts of a slot whose body is in R2 count for in the cache's bound: an object of ten fields. */
const FACTS_CHARS = 200;

export class PageCache {
  readonly #load: (slotId: number) => StoredPage | null;
  readonly #modelsOf: (groupSeq: number) => readonly (string | null)[];
  /** By slot id of the page's first slot, least recently used first. */
  #pages = new Map<number, CachedPage>();
  #current: { page: CachedPage; firstSlot: number } | null = null;
  #chars = 0;
  /** Pages that storage does not have yet. */
  readonly #unstored = new Set<number>();

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

  /** Where the body of a slot's call is in R2; null if it is in its page. */
  placeOf(slotId: number): BodyPlace | null {
    const { page, firstSlot } = this.#pageOf(slotId);
    if (page.place === null) return null;
    return { object: page.place.object, line: page.place.line + slotId - firstSlot };
  }

  /** The body of a slot's call, as JSON text. Throws if it is not in its page. */
  call(slotId: number): string {
    const { page, firstSlot } = this.#pageOf(slotId);
    if (page.place !== null) throw new Error(`the body of slot ${slotId} is not in its page`);
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
    // A page begins at most so many slots before each of its own. Graphs jump from page to page, so this is not a search.
    for (let firstSlot = slotId; firstSlot > slotId - CALL_PAGE_SLOTS_MAX; firstSlot--) {
      const page = this.#pages.get(firstSlot);
      if (page === undefined) continue;
      if (slotId >= firstSlot + page.facts.length) break;
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
    return this.#keep(firstSlot, stored, this.#modelsOf(groupSeqOf(slotId)));
  }

  /** Caches a page that the present turn stores. */
  keep(firstSlot: number, page: StoredPage, models: readonly (string | null)[]): void {
    this.#unstored.add(firstSlot);
    this.#keep(firstSlot, page, models);
  }

  /** The turn has stored its pages. */
  stored(): void {
    if (this.#unstored.size === 0) return;
    this.#unstored.clear();
    this.#shrink();
  }

  #keep(
    firstSlot: number,
    stored: StoredPage,
    models: readonly (string | null)[],
  ): { page: CachedPage; firstSlot: number } {
    const facts = readFacts(stored.facts, models);
    const { firstIndex, calls } = stored;
    const place = placeOf(calls);
    // Beside bodies the facts are little.
    const chars = place === null ? calls.length : facts.length * FACTS_CHARS;
    const page = { firstIndex, facts, calls, lines: null, place, chars };
    this.#chars += chars - (this.#pages.get(firstSlot)?.chars ?? 0);
    this.#pages.delete(firstSlot);
    this.#pages.set(firstSlot, page);
    this.#current = { page, firstSlot };
    this.#shrink();
    return this.#current;
  }

  #shrink(): void {
    for (const [firstSlot, { chars }] of this.#pages) {
      if (this.#chars <= PAGE_CACHE_BYTES_MAX) break;
      if (firstSlot === this.#current?.firstSlot || this.#unstored.has(firstSlot)) continue;
      this.#pages.delete(firstSlot);
      this.#chars -= chars;
    }
  }

  /** Forgets everything: nothing is being dispatched. */
  clear(): void {
    this.#pages.clear();
    this.#unstored.clear();
    this.#current = null;
    this.#chars = 0;
  }
}
