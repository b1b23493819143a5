/** A text that is stored as a context: others go on while it is indexed. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { bytesSource, storeContext } from "../../../src/http/contexts/store-context.ts";
import { TEXT_SLICE_CHARS } from "../../../src/limits.ts";
import type { IndexedContext } from "../../../src/contexts/types.ts";

/** Node has none: what the id of the context is made of is another test's. */
class DigestStream extends WritableStream<Uint8Array> {
  readonly digest = Promise.resolve(new ArrayBuffer(32));

  constructor(_algorithm: string) {
    super();
  }
}

beforeEach(() => void vi.stubGlobal("crypto", { DigestStream }));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it("is indexed with a pause behind each slice of it", async () => {
  const added: number[] = [];
  const files = {
    addContext: ({ record }: IndexedContext, text: Uint8Array) => {
      added.push(record.bytes, text.length);
      return Promise.resolve({ ok: true, record, isNew: true });
    },
  };
  const objects = { SHELF: { getByName: () => files } } as never;
  const bytes = new TextEncoder().encode("the quick brown fox ".repeat((5 * TEXT_SLICE_CHARS) / 20));
  const timers = vi.spyOn(globalThis, "setTimeout");
  const text = { source: bytesSource(bytes), name: null, param: null };
  await storeContext(text, { objects, runId: "run_1", nowMs: 0 });
  // Each pause of a lone request is one timer.
  expect(timers.mock.calls.length).toBeGreaterThanOrEqual(4);
  expect(added).toEqual([bytes.length, bytes.length]);
});
