/** The bodies of a large group on their way to R2: which pages stay, how the others are cut, what happens on failure. */
import { describe, expect, it } from "vitest";
import { CallPageBuilder, placeOf, type CallPage } from "../../../../../src/run/queue/call-page.ts";
import {
  BODY_OBJECT_CHARS_MAX,
  BODY_OBJECT_SLOTS_MAX,
  BODY_PUTS_IN_FLIGHT_MAX,
  CALL_PAGE_SLOTS_MAX,
  PAGES_CALL_CHARS_MAX,
  ROW_BODIES_CHARS_MAX,
} from "../../../../../src/limits.ts";
import { BodyUpload } from "../../../../../src/objects/clients/groups/body-upload.ts";
import { makeFacts } from "../../../../support/engine.ts";

/** An R2 in memory. `put` may be replaced. */
function bucket() {
  const objects = new Map<number, string>();
  const removed: number[] = [];
  const deps = {
    put: (object: number, text: string): Promise<number> => Promise.resolve(objects.set(object, text) && text.length),
    remove: (count: number): Promise<void> => Promise.resolve(void removed.push(count)),
  };
  return { objects, removed, deps };
}

/** The pages of calls with prompts of so many characters. */
function* pagesOf(count: number, chars: number): Generator<CallPage> {
  const builder = new CallPageBuilder({});
  for (let index = 0; index < count; index++) {
    const page = builder.add({ body: { prompt: `${index} `.padEnd(chars, "x") }, facts: makeFacts() });
    if (page !== null) yield page;
  }
  const last = builder.flush();
  if (last !== null) yield last;
}

/** Every body, as a run object finds it. */
function bodiesOf(pages: readonly CallPage[], objects: ReadonlyMap<number, string>): string[] {
  return pages.flatMap((page, at) => {
    const place = placeOf(page.calls);
    if (place === null) return page.calls.split("\n");
    const next = pages[at + 1]?.firstIndex;
    const lines = objects.get(place.object)?.split("\n").slice(place.line) ?? [];
    return next === undefined ? lines : lines.slice(0, next - page.firstIndex);
  });
}

async function placeAll(upload: BodyUpload, pages: Iterable<CallPage>): Promise<CallPage[]> {
  const placed: CallPage[] = [];
  for (const page of pages) placed.push(await upload.place(page));
  await upload.stored();
  return placed;
}

describe("the bodies of a group", () => {
  it("stay in its pages up to a bound: a small group has nothing in R2", async () => {
    const { objects, removed, deps } = bucket();
    const upload = new BodyUpload(deps);
    const pages = [...pagesOf(64, 1_000)];
    expect(await placeAll(upload, pages)).toEqual(pages);
    expect(upload.objects).toBeUndefined();
    await upload.discard();
    expect([objects.size, removed]).toEqual([0, []]);
  });

  it.each([
    ["many small calls", 20_000, 400],
    ["calls as large as a page", 40, 250_000],
    ["calls larger than an object", 8, 1_200_000],
  ])("beyond it are in objects of bounded size, in order: %s", async (_, count, chars) => {
    const { objects, deps } = bucket();
    const upload = new BodyUpload(deps);
    const pages = [...pagesOf(count, chars)];
    const placed = await placeAll(upload, pages);
    expect(bodiesOf(placed, objects)).toEqual(pages.flatMap(({ calls }) => calls.split("\n")));
    const rowChars = placed
      .filter(({ calls }) => placeOf(calls) === null)
      .reduce((sum, { calls }) => sum + calls.length, 0);
    expect(rowChars).toBeLessThanOrEqual(ROW_BODIES_CHARS_MAX);
    // The first stay: they start without a read of R2.
    const firstPlaced = placed.findIndex(({ calls }) => placeOf(calls) !== null);
    expect(firstPlaced).toBeGreaterThan(0);
    expect(placed.slice(firstPlaced).every(({ calls }) => placeOf(calls) !== null)).toBe(true);
    expect([...objects.keys()]).toEqual(Array.from({ length: upload.objects ?? 0 }, (__, index) => index));
    for (const text of objects.values()) {
      const lines = text.split("\n").length;
      expect(lines).toBeLessThanOrEqual(BODY_OBJECT_SLOTS_MAX);
      expect(text.length <= BODY_OBJECT_CHARS_MAX + CALL_PAGE_SLOTS_MAX || lines === 1).toBe(true);
    }
  });

  it("are in R2 only after the run has pages of the group: then it knows of the upload whatever happens", () => {
    expect(ROW_BODIES_CHARS_MAX).toBeGreaterThan(2 * PAGES_CALL_CHARS_MAX);
  });

  it("are in memory in a bounded number while R2 is slow", async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const put = (): Promise<number> => {
      const { promise, resolve } = Promise.withResolvers<number>();
      waiting.push(() => resolve(1));
      most = Math.max(most, waiting.length);
      return promise;
    };
    const upload = new BodyUpload({ ...bucket().deps, put });
    const state = { isPlaced: false };
    const placing = placeAll(upload, pagesOf(20_000, 400)).then(() => (state.isPlaced = true));
    while (!state.isPlaced) {
      await new Promise((resolve) => setImmediate(resolve));
      waiting.shift()?.();
    }
    await placing;
    expect(most).toBe(BODY_PUTS_IN_FLIGHT_MAX);
  });

  it("that R2 refuses fail the upload, and what was stored can be discarded", async () => {
    const { removed, objects, deps } = bucket();
    const put = (object: number, text: string): Promise<number> =>
      object === 1 ? Promise.reject(new Error("R2 is down")) : deps.put(object, text);
    const upload = new BodyUpload({ ...deps, put });
    await expect(placeAll(upload, pagesOf(20_000, 400))).rejects.toThrow("R2 is down");
    await upload.discard();
    expect(removed).toEqual([upload.objects]);
    expect(objects.has(0)).toBe(true);
  });
});
