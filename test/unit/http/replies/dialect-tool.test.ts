/** The answer to `llm_batch`: two lists over sent and unsent prompts, of which no long one is kept in memory. */
import { describe, expect, it } from "vitest";
import { ANSWER_NOTES_CHARS_MAX } from "../../../../src/limits.ts";
import type { SlotView } from "../../../../src/objects/methods/groups.ts";
import { llmBatchJson } from "../../../../src/http/replies/dialect-tool.ts";
import { failedView, groupView, slotView } from "./views.ts";

type Answer = { result: unknown[]; errors: ({ code: string; message: string } | null)[]; usage: unknown };

/** The answer for `count` prompts, of which those at `indexes` were sent; `reads`: passes over the slots. */
async function answerOf(count: number, indexes: readonly number[], slotOf: (index: number) => SlotView, each: number) {
  let reads = 0;
  const slotsFrom = (from: number): Promise<SlotView[]> => {
    if (from === 0) reads += 1;
    const size = Math.min(each, indexes.length - from);
    return Promise.resolve(Array.from({ length: size }, (_, at) => slotOf(from + at)));
  };
  let text = "";
  const group = indexes.length === 0 ? null : groupView(indexes.length);
  for await (const piece of llmBatchJson({ count, indexes, group, slotsFrom })) text += piece;
  const json: Answer = JSON.parse(text);
  return { ...json, reads };
}

const completed = (index: number): SlotView => slotView({ index, text: `text ${index}` });

describe("the answer to llm_batch", () => {
  it.each([1, 2, 3, 10])("has sent and unsent prompts in their places, read %i at a time", async (each) => {
    const { result, errors, reads } = await answerOf(6, [1, 2, 4], completed, each);
    const isUnsent = [true, false, false, true, false, true];
    expect(result).toEqual(
      [null, "text 0", "text 1", null, "text 2", null].map(
        (text, place) => text ?? `Error in sub-LLM call: llm_batch prompt at index ${place} must be a string.`,
      ),
    );
    expect(errors.map((error) => error?.code ?? null)).toEqual(isUnsent.map((is) => (is ? "invalid_request" : null)));
    expect(reads).toBe(1);
  });

  it("of no prompt that was sent has their errors only, and of no prompt nothing", async () => {
    const unsent = await answerOf(2, [], completed, 5);
    expect([unsent.result.length, unsent.errors.map((error) => error?.code)]).toEqual([
      2,
      ["invalid_request", "invalid_request"],
    ]);
    expect(await answerOf(0, [], completed, 5)).toMatchObject({ result: [], errors: [] });
  });

  it("with errors that are too long to keep has the same ones, read once more", async () => {
    const count = 2_000;
    const message = "y".repeat(Math.ceil(ANSWER_NOTES_CHARS_MAX / count));
    const failing = (index: number) => failedView({ reason: "invalid_request", message, param: null }, { index });
    const indexes = Array.from({ length: count }, (_, index) => index + 1);
    const { result, errors, reads } = await answerOf(count + 2, indexes, failing, 100);
    expect(reads).toBe(2);
    expect([result.length, errors.length]).toEqual([count + 2, count + 2]);
    expect(errors[0]?.message).toContain("index 0");
    expect(errors.slice(1, -1).every((error) => error?.message === message)).toBe(true);
    expect(errors.at(-1)?.message).toContain(`index ${count + 1}`);
  });
});
