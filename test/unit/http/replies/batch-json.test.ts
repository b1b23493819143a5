/** The JSON answer of a batch: four lists of the same slots, of which only short ones are kept in memory. */
import { describe, expect, it } from "vitest";
import type { SlotView } from "../../../../src/objects/methods/groups.ts";
import { ANSWER_KEPT_CHARS_MAX, ANSWER_NOTES_CHARS_MAX } from "../../../../src/limits.ts";
import { batchJson } from "../../../../src/http/replies/batch-json.ts";
import { failedView, groupView, slotView } from "./views.ts";

/** Slots that are made as they are read, some at a time; `reads` counts the passes over all of them. */
function madeSlots(count: number, slotOf: (index: number) => SlotView, each = 500) {
  const counted = { reads: 0 };
  const slotsFrom = (from: number): Promise<SlotView[]> => {
    if (from === 0) counted.reads += 1;
    return Promise.resolve(Array.from({ length: Math.min(each, count - from) }, (_, at) => slotOf(from + at)));
  };
  return { counted, slotsFrom };
}

async function answerOf(count: number, slotOf: (index: number) => SlotView, each?: number) {
  const { counted, slotsFrom } = madeSlots(count, slotOf, each);
  let text = "";
  for await (const piece of batchJson({ group: groupView(count), style: "bracket", slotsFrom })) text += piece;
  return { json: JSON.parse(text), reads: counted.reads };
}

describe("a batch's JSON answer", () => {
  it("has every list in input order, whatever the pages", async () => {
    const reason = { reason: "deadline_exceeded", deadlineMs: 5 } as const;
    const slotOf = (index: number) =>
      index % 3 === 0 ? failedView(reason, { index }) : slotView({ index, text: `text ${index}` });
    for (const each of [1, 2, 7, 8]) {
      const { json, reads } = await answerOf(7, slotOf, each);
      expect(reads).toBe(1);
      expect(json.responses).toEqual(json.results);
      expect(json.results[1]).toBe("text 1");
      expect(json.results[3]).toMatch(/^\[error\] /);
      expect(json.errors.map((error: { code: string } | null) => error?.code ?? null)).toEqual(
        [0, 1, 2, 3, 4, 5, 6].map((index) => (index % 3 === 0 ? "deadline_exceeded" : null)),
      );
      expect(json.items.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(json.count).toBe(7);
    }
  });

  it("reads the slots once more for each list that is too long to keep, and has the same elements then", async () => {
    const chars = Math.ceil(ANSWER_KEPT_CHARS_MAX / 100);
    const textOf = (index: number) => `${index} `.padEnd(chars, "x");
    const { json, reads } = await answerOf(101, (index) => slotView({ index, text: textOf(index) }), 10);
    expect(reads).toBe(2);
    expect(json.results).toEqual(Array.from({ length: 101 }, (_, index) => textOf(index)));
    expect(json.responses).toEqual(json.results);
    expect(json.errors).toEqual(Array.from({ length: 101 }, () => null));
  });

  it("of 50,000 slots keeps neither its items nor its errors", { tags: ["slow"] }, async () => {
    const message = "y".repeat(Math.ceil(ANSWER_NOTES_CHARS_MAX / 50_000));
    const slotOf = (index: number) => failedView({ reason: "invalid_request", message, param: null }, { index });
    const { json, reads } = await answerOf(50_000, slotOf);
    expect(reads).toBe(4);
    expect(json.items.map(({ index }: { index: number }) => index)).toEqual(
      json.results.map((_: unknown, i: number) => i),
    );
    expect(json.errors).toHaveLength(50_000);
    expect(json.errors[49_999].code).toBe("invalid_request");
  });
});
