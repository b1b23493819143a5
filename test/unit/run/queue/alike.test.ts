import { describe, expect, it } from "vitest";
import { isAlike } from "../../../../src/run/queue/alike.ts";
import type { SlotFacts } from "../../../../src/run/queue/slot.ts";
import { makeFacts } from "../../../support/engine.ts";

const OTHERS: Partial<SlotFacts>[] = [
  { promptBytes: 93 },
  { messageCount: 2 },
  { mediaParts: 1 },
  { model: "m" },
  { modelIndex: 1 },
  { maxTokens: 101 },
  { maxTokens: null },
  { priority: 1 },
  { timeoutMs: 5 },
  { isBare: true },
];

describe("two slots", () => {
  it("are alike if their calls are plain and have the same facts, or are one", () => {
    expect(isAlike(makeFacts(), makeFacts())).toBe(true);
    expect(isAlike(makeFacts({ isBare: true }), makeFacts({ isBare: true }))).toBe(true);
    const special = makeFacts({ dedupeKey: "a" });
    expect(isAlike(special, special)).toBe(true);
  });

  it.each(OTHERS)("are not if one has %o", (fields) => {
    expect(isAlike(makeFacts(), makeFacts(fields))).toBe(false);
    expect(isAlike(makeFacts(fields), makeFacts())).toBe(false);
  });

  it.each<Partial<SlotFacts>>([{ dedupeKey: "a" }, { textTokensMax: 3 }, { content: "hash" }, { fileParts: 1 }])(
    "are not if one has %o, nor if both have: those facts are not compared",
    (fields) => {
      expect(isAlike(makeFacts(), makeFacts(fields))).toBe(false);
      expect(isAlike(makeFacts(fields), makeFacts())).toBe(false);
      expect(isAlike(makeFacts(fields), makeFacts(fields))).toBe(false);
    },
  );
});
