import { describe, expect, it } from "vitest";
import { PageCache } from "../../../../../durable-objects/run/store/page-cache.ts";
import { CallPageBuilder, placedPage, type CallPage } from "../../../../../src/run/queue/call-page.ts";
import { groupSeqOf, indexOf, slotIdOf } from "../../../../../src/run/queue/slot.ts";
import { PAGE_CACHE_BYTES_MAX } from "../../../../../src/limits.ts";
import { makeFacts } from "../../../../support/engine.ts";

/** Stored groups by number: each call's prompt is given, its prompt bytes are its index. */
function stored(groups: Record<number, readonly string[]>) {
  const pages = new Map<number, CallPage[]>();
  const models = new Map<number, readonly (string | null)[]>();
  for (const [seq, prompts] of Object.entries(groups)) {
    const builder = new CallPageBuilder({});
    const built = prompts.map((prompt, index) =>
      builder.add({ body: { prompt }, facts: makeFacts({ promptBytes: index, model: `m${seq}` }) }),
    );
    pages.set(
      Number(seq),
      [...built, builder.flush()].filter((page) => page !== null),
    );
    models.set(Number(seq), builder.models);
  }
  const loads: number[] = [];
  const cache = new PageCache(
    (slotId) => {
      loads.push(slotId);
      return pages.get(groupSeqOf(slotId))?.findLast(({ firstIndex }) => firstIndex <= indexOf(slotId)) ?? null;
    },
    (seq) => models.get(seq) ?? [],
  );
  return { cache, loads, pages, models };
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `p${index}`);

describe("pages being dispatched", () => {
  it("give a slot's facts and its call's text, whatever page it is in", () => {
    const { cache } = stored({ 1: numbered(70), 2: numbered(3) });
    for (const [seq, index] of [
      [1, 0],
      [2, 2],
      [1, 69],
      [1, 31],
      [1, 32],
      [2, 0],
    ] as const) {
      expect(cache.facts(slotIdOf(seq, index))).toMatchObject({ promptBytes: index, model: `m${seq}`, modelIndex: 0 });
      expect(cache.call(slotIdOf(seq, index))).toBe(`{"prompt":"p${index}"}`);
    }
  });

  it("are read once each, in whatever order their slots are needed", () => {
    const { cache, loads } = stored({ 1: numbered(64), 2: numbered(32) });
    for (let index = 0; index < 32; index++) {
      for (const slotId of [slotIdOf(1, index), slotIdOf(2, index), slotIdOf(1, 32 + index)]) {
        cache.facts(slotId);
        cache.call(slotId);
      }
    }
    expect(loads).toEqual([slotIdOf(1, 0), slotIdOf(2, 0), slotIdOf(1, 32)]);
  });

  it("that were just stored are not read", () => {
    const { cache, loads, pages, models } = stored({ 1: numbered(40) });
    for (const page of pages.get(1) ?? []) cache.keep(slotIdOf(1, page.firstIndex), page, models.get(1) ?? []);
    for (let index = 0; index < 40; index++) expect(cache.call(slotIdOf(1, index))).toBe(`{"prompt":"p${index}"}`);
    expect(loads).toEqual([]);
  });

  it("are read once more after the cache was cleared", () => {
    const { cache, loads } = stored({ 1: numbered(1) });
    cache.facts(slotIdOf(1, 0));
    cache.clear();
    expect(cache.facts(slotIdOf(1, 0)).promptBytes).toBe(0);
    expect(loads).toHaveLength(2);
  });

  it("throw for a slot that is in no page", () => {
    const { cache } = stored({ 1: numbered(33) });
    expect(() => cache.facts(slotIdOf(1, 33))).toThrow("is in no page");
    expect(() => cache.call(slotIdOf(1, 33))).toThrow("is in no page");
    expect(() => cache.facts(slotIdOf(2, 0))).toThrow("is in no page");
  });
});

describe("the bodies of a page", () => {
  const readAll = (cache: PageCache, count: number): void => {
    for (let index = 0; index < count; index++) expect(cache.call(slotIdOf(1, index))).toBe(`{"prompt":"p${index}"}`);
  };

  it("stay until each of them was read", () => {
    const { cache, loads } = stored({ 1: numbered(32) });
    readAll(cache, 31);
    readAll(cache, 31);
    expect(loads).toHaveLength(1);
  });

  it("are dropped once each of them was read, but its facts stay", () => {
    const { cache, loads } = stored({ 1: numbered(32) });
    readAll(cache, 32);
    for (let index = 0; index < 32; index++) expect(cache.facts(slotIdOf(1, index)).promptBytes).toBe(index);
    expect(loads).toHaveLength(1);
    expect(cache.call(slotIdOf(1, 5))).toBe('{"prompt":"p5"}');
    expect(loads).toHaveLength(2);
  });

  it("stay if they are read again, as for retries", () => {
    const { cache, loads } = stored({ 1: numbered(32) });
    for (let times = 0; times < 4; times++) readAll(cache, 32);
    expect(loads).toHaveLength(2);
  });

  it("stay while their turn has not stored them, for it cannot read them again", () => {
    const { cache, loads, pages, models } = stored({ 1: numbered(32) });
    for (const page of pages.get(1) ?? []) cache.keep(slotIdOf(1, 0), page, models.get(1) ?? []);
    for (let times = 0; times < 2; times++) readAll(cache, 32);
    expect(loads).toEqual([]);
  });
});

describe("the memory of pages", () => {
  // Groups of one call each: a page of exactly a quarter of what may be kept.
  const quarter = "x".repeat(PAGE_CACHE_BYTES_MAX / 4 - '{"prompt":""}'.length);
  const groups = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, seq) => [seq + 1, [quarter]]));

  it("stays within its bound", () => {
    const four = stored(groups(4));
    for (const seq of [1, 2, 3, 4, 1, 2, 3, 4]) four.cache.facts(slotIdOf(seq, 0));
    expect(four.loads).toHaveLength(4);
    const five = stored(groups(5));
    for (const seq of [1, 2, 3, 4, 5, 2, 3, 4, 5]) five.cache.facts(slotIdOf(seq, 0));
    expect(five.loads).toHaveLength(5);
    five.cache.facts(slotIdOf(1, 0));
    expect(five.loads).toHaveLength(6);
  });

  it("has room for further pages when the bodies of others are dropped", () => {
    const { cache, loads } = stored(groups(9));
    const seqs = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    for (const seq of seqs) cache.call(slotIdOf(seq, 0));
    for (const seq of seqs) cache.facts(slotIdOf(seq, 0));
    expect(loads).toHaveLength(9);
    // Bodies that are read again stay, and count again.
    for (const seq of [5, 6, 7]) cache.call(slotIdOf(seq, 0));
    loads.length = 0;
    for (const seq of [5, 6, 7]) cache.call(slotIdOf(seq, 0));
    for (const seq of seqs) cache.facts(slotIdOf(seq, 0));
    expect(loads).toEqual([]);
    for (const seq of [8, 9]) cache.call(slotIdOf(seq, 0));
    loads.length = 0;
    for (const seq of seqs) cache.facts(slotIdOf(seq, 0));
    expect(loads.length).toBeGreaterThan(0);
  });

  it("drops the least recently used page first", () => {
    const { cache, loads } = stored(groups(5));
    for (const seq of [1, 2, 3, 4]) cache.facts(slotIdOf(seq, 0));
    cache.facts(slotIdOf(1, 0));
    cache.facts(slotIdOf(5, 0));
    loads.length = 0;
    for (const seq of [1, 3, 4, 5]) cache.facts(slotIdOf(seq, 0));
    expect(loads).toEqual([]);
    cache.facts(slotIdOf(2, 0));
    expect(loads).toEqual([slotIdOf(2, 0)]);
  });

  it("keeps the page in use even if that page alone exceeds the bound", () => {
    const { cache, loads } = stored({ 1: [quarter.repeat(5)], 2: ["a"] });
    for (let times = 0; times < 3; times++) cache.facts(slotIdOf(1, 0));
    expect(loads).toHaveLength(1);
    cache.facts(slotIdOf(2, 0));
    cache.facts(slotIdOf(1, 0));
    expect(loads).toHaveLength(3);
  });

  it("counts a page that is cached twice once", () => {
    const { cache, loads, pages, models } = stored(groups(4));
    const keepFirst = (): void => {
      for (const page of pages.get(1) ?? []) cache.keep(slotIdOf(1, 0), page, models.get(1) ?? []);
    };
    for (let times = 0; times < 5; times++) keepFirst();
    cache.stored();
    for (const seq of [2, 3, 4, 1, 2, 3, 4]) cache.facts(slotIdOf(seq, 0));
    expect(loads).toHaveLength(3);
  });

  it("keeps every page that its turn stores until it has, for dispatch cannot read them before", () => {
    const { cache, loads, pages, models } = stored(groups(8));
    const seqs = [1, 2, 3, 4, 5, 6, 7, 8];
    for (const seq of seqs) {
      for (const page of pages.get(seq) ?? []) cache.keep(slotIdOf(seq, 0), page, models.get(seq) ?? []);
    }
    for (const seq of seqs) cache.facts(slotIdOf(seq, 0));
    expect(loads).toEqual([]);
    cache.stored();
    for (const seq of seqs) cache.facts(slotIdOf(seq, 0));
    expect(loads.length).toBeGreaterThan(0);
  });
});

describe("pages whose bodies are in R2", () => {
  it("give the place of each body, and no text", () => {
    const { pages, models } = stored({ 3: numbered(40) });
    const placed = (pages.get(3) ?? []).map((page, index) => placedPage(page, { object: 7 + index, line: 64 }));
    const cache = new PageCache(
      (slotId) => placed.findLast(({ firstIndex }) => firstIndex <= indexOf(slotId)) ?? null,
      () => models.get(3) ?? [],
    );
    expect(cache.placeOf(slotIdOf(3, 0))).toEqual({ object: 7, line: 64 });
    expect(cache.placeOf(slotIdOf(3, 31))).toEqual({ object: 7, line: 95 });
    expect(cache.placeOf(slotIdOf(3, 33))).toEqual({ object: 8, line: 65 });
    expect(cache.facts(slotIdOf(3, 33)).promptBytes).toBe(33);
    expect(() => cache.call(slotIdOf(3, 33))).toThrow("not in its page");
  });

  it("are as bounded in memory as others: their facts count, too", () => {
    const { pages, models } = stored({ 1: numbered(32) });
    const [page] = pages.get(1) ?? [];
    if (page === undefined) throw new Error("no page");
    const loads: number[] = [];
    const cache = new PageCache(
      (slotId) => {
        loads.push(slotId);
        return placedPage({ ...page, firstIndex: indexOf(slotId) - (indexOf(slotId) % 32) }, { object: 0, line: 0 });
      },
      () => models.get(1) ?? [],
    );
    const count = 1_500;
    for (let index = 0; index < count; index++) cache.facts(slotIdOf(1, index * 32));
    for (let index = 0; index < count; index++) cache.facts(slotIdOf(1, index * 32));
    // Each pass finds that the pages it begins with are gone.
    expect(loads.length).toBe(2 * count);
  });
});

describe("a page of copies", () => {
  const copied = (place: { object: number; line: number } | null = null) => {
    const builder = new CallPageBuilder({});
    const whole = builder.copies({ body: { prompt: "same" }, facts: makeFacts({ promptBytes: 4 }) }, 50_000);
    const page = place === null ? whole : placedPage(whole, place);
    const loads: number[] = [];
    const cache = new PageCache(
      (slotId) => {
        loads.push(slotId);
        return page;
      },
      () => builder.models,
    );
    return { cache, loads };
  };

  it("is read once, and gives each of its slots the one call", () => {
    const { cache, loads } = copied();
    for (const index of [0, 49_999, 33, 12_345]) {
      expect(cache.facts(slotIdOf(1, index))).toMatchObject({ promptBytes: 4 });
      expect(cache.call(slotIdOf(1, index))).toBe('{"prompt":"same"}');
      // Another group is dispatched in between.
      cache.facts(slotIdOf(2, index));
    }
    expect(loads).toEqual([slotIdOf(1, 0), slotIdOf(2, 0)]);
  });

  it("names the one place of its body in R2", () => {
    const { cache } = copied({ object: 3, line: 7 });
    expect(cache.placeOf(slotIdOf(1, 49_999))).toEqual({ object: 3, line: 7 });
  });
});
