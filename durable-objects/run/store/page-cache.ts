/**
 * Parsed pages of the slots being dispatched, in bounded memory: the least recently used are dropped first. Pages that the
 * present turn stores stay until it has, because its dispatch cannot read them: one request has at most a few megabytes.
 * Once every body of a page was read, the bodies are dropped, because most calls are sent once; its facts stay, which
 * settlements need. A page whose bodies are read again, for a retry, keeps them.
 */
import { isCopied, placeOf, readFacts, type BodyPlace } from "../../../src/run/queue/call-page.ts";
import { groupSeqOf, indexOf, type SlotFacts } from "../../../src/run/queue/slot.ts";
import { CALL_PAGE_SLOTS_MAX, PAGE_CACHE_BYTES_MAX } from "../../../src/limits.ts";
import { instanceMemory, type InstanceMemory, type Member } from "./instance-memory.ts";
import type { StoredPage } from "./records.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";
import { RenewedSet } from "../../../src/renewed/set.ts";

/** `place` null = the page has its bodies. `chars`: about what it takes in memory. */
type CachedPage = {
  facts: SlotFacts[];
  /** Whether its slots have one body, the same. */
  isCopied: boolean;
  bodies: Bodies | null;
  place: BodyPlace | null;
  chars: number;
};

/** The bodies of a page, one per line. `unread`: its slots whose body was not read yet; null = the bodies stay. */
type Bodies = { lines: readonly string[]; unread: Set<number> | null };

/** Characters that the facts of a slot whose body is not in memory count for in the cache's bound: an object of ten fields. */
const FACTS_CHARS = 200;

export class PageCache {
  readonly #load: (slotId: number) => StoredPage | null;
  readonly #modelsOf: (groupSeq: number) => readonly (string | null)[];
  /** By slot id of the page's first slot, least recently used first. */
  #pages = new RenewedMap<number, CachedPage>();
  #current: { page: CachedPage; firstSlot: number } | null = null;
  #chars = 0;
  /** Pages that storage does not have yet. */
  readonly #unstored = new RenewedSet<number>();

  readonly #member: Member;

  /** @param memory What the bodies of all run objects of the isolate count in. */
  constructor(
    load: (slotId: number) => StoredPage | null,
    modelsOf: (groupSeq: number) => readonly (string | null)[],
    memory: InstanceMemory = instanceMemory,
  ) {
    this.#load = load;
    this.#modelsOf = modelsOf;
    this.#member = memory.member(() => this.#giveBack());
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
    return { object: page.place.object, line: page.place.line + lineOf(page, slotId - firstSlot) };
  }

  /** The body of a slot's call, as JSON text. Throws if it is not in its page. */
  call(slotId: number): string {
    const { page, firstSlot } = this.#pageOf(slotId);
    if (page.place !== null) throw new Error(`the body of slot ${slotId} is not in its page`);
    const bodies = page.bodies ?? this.#readBodies(slotId, page);
    const line = bodies.lines[lineOf(page, slotId - firstSlot)];
    if (line === undefined) throw new Error(`slot ${slotId} is in no page`);
    const { unread } = bodies;
    unread?.delete(slotId - firstSlot);
    if (unread?.size === 0 && !this.#unstored.has(firstSlot)) {
      page.bodies = null;
      this.#resize(page, page.facts.length * FACTS_CHARS);
      this.#member.keeps(this.#chars);
    }
    return line;
  }

  /** Reads the bodies of a page that were dropped, to keep them. */
  #readBodies(slotId: number, page: CachedPage): Bodies {
    const { calls } = this.#stored(slotId);
    page.bodies = { lines: calls.split("\n"), unread: null };
    this.#resize(page, calls.length);
    this.#shrink();
    return page.bodies;
  }

  #resize(page: CachedPage, chars: number): void {
    this.#chars += chars - page.chars;
    page.chars = chars;
  }

  #pageOf(slotId: number): { page: CachedPage; firstSlot: number } {
    const current = this.#current;
    if (current !== null && slotId >= current.firstSlot && slotId < current.firstSlot + current.page.facts.length) {
      return current;
    }
    // A page of copies is its group's only one. Others begin at most so many slots before each of their own. Graphs jump from page
    // to page, so this is not a search.
    const first = slotId - indexOf(slotId);
    if (this.#pages.get(first)?.isCopied === true) return this.#used(first, slotId);
    for (let firstSlot = slotId; firstSlot > slotId - CALL_PAGE_SLOTS_MAX; firstSlot--) {
      const page = this.#pages.get(firstSlot);
      if (page === undefined) continue;
      if (slotId >= firstSlot + page.facts.length) break;
      return this.#used(firstSlot, slotId);
    }
    return this.#read(slotId);
  }

  /** A cached page, which is the last to be dropped from now on. */
  #used(firstSlot: number, slotId: number): { page: CachedPage; firstSlot: number } {
    const page = this.#pages.get(firstSlot);
    if (page === undefined) return this.#read(slotId);
    this.#pages.delete(firstSlot);
    this.#pages.set(firstSlot, page);
    this.#current = { page, firstSlot };
    return this.#current;
  }

  #read(slotId: number): { page: CachedPage; firstSlot: number } {
    const stored = this.#stored(slotId);
    const firstSlot = slotId - indexOf(slotId) + stored.firstIndex;
    return this.#keep(firstSlot, stored, this.#modelsOf(groupSeqOf(slotId)));
  }

  #stored(slotId: number): StoredPage {
    const stored = this.#load(slotId);
    if (stored === null) throw new Error(`slot ${slotId} is in no page`);
    return stored;
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
    const { calls } = stored;
    const place = placeOf(calls);
    // Beside bodies the facts are little.
    const copied = isCopied(stored.facts);
    const chars = place === null ? calls.length : facts.length * FACTS_CHARS;
    // The body of copies stays: all of them are sent.
    const bodies = place === null ? { lines: calls.split("\n"), unread: copied ? null : new Set(facts.keys()) } : null;
    const page = { facts, isCopied: copied, bodies, place, chars };
    this.#chars += chars - (this.#pages.get(firstSlot)?.chars ?? 0);
    this.#pages.delete(firstSlot);
    this.#pages.set(firstSlot, page);
    this.#current = { page, firstSlot };
    this.#shrink();
    return this.#current;
  }

  #shrink(): void {
    this.#dropDownTo(PAGE_CACHE_BYTES_MAX);
    this.#member.keeps(this.#chars);
  }

  #dropDownTo(charsMax: number): void {
    for (const [firstSlot, { chars }] of this.#pages) {
      if (this.#chars <= charsMax) break;
      if (firstSlot === this.#current?.firstSlot || this.#unstored.has(firstSlot)) continue;
      this.#pages.delete(firstSlot);
      this.#chars -= chars;
    }
  }

  /** Other objects need the memory: what is dropped is read again. */
  #giveBack(): number {
    this.#current = null;
    this.#dropDownTo(0);
    return this.#chars;
  }

  /** Forgets everything: nothing is being dispatched. */
  clear(): void {
    this.#pages.clear();
    this.#unstored.clear();
    this.#current = null;
    this.#chars = 0;
    this.#member.keeps(0);
  }
}

/** Where the body of a page's slot is among the bodies of the page. */
function lineOf({ isCopied }: CachedPage, slot: number): number {
  return isCopied ? 0 : slot;
}
