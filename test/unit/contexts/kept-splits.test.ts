/** Chunks of texts that were split before. */
import { expect, it } from "vitest";
import { KeptSplits } from "../../../src/contexts/kept-splits.ts";
import type { Split } from "../../../src/contexts/types.ts";
import { SPLITS_KEPT_MAX } from "../../../src/limits.ts";

const split: Split = { by: "lines", size: 100, overlap: 10 };
const chunks = [
  { from: 0, to: 90 },
  { from: 80, to: 99_999_999 },
];

it("knows the chunks of a text under the same split, and of nothing else", () => {
  const kept = new KeptSplits();
  kept.keep("ctx_a", split, chunks);
  expect(kept.of("ctx_a", { ...split })).toEqual(chunks);
  const others = [{ by: "paragraphs" as const }, { size: 101 }, { overlap: 11 }];
  for (const other of others) expect(kept.of("ctx_a", { ...split, ...other })).toBeNull();
  expect(kept.of("ctx_b", split)).toBeNull();
});

it("forgets the split that was not used for the longest time, beyond its bound", () => {
  const kept = new KeptSplits();
  for (let size = 1; size <= SPLITS_KEPT_MAX; size += 1) kept.keep("ctx_a", { ...split, size }, chunks);
  expect(kept.of("ctx_a", { ...split, size: 1 })).toEqual(chunks);
  kept.keep("ctx_a", { ...split, size: SPLITS_KEPT_MAX + 1 }, chunks);
  expect(kept.of("ctx_a", { ...split, size: 2 })).toBeNull();
  expect(kept.of("ctx_a", { ...split, size: 1 })).toEqual(chunks);
});
