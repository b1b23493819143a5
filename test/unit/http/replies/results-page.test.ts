import { describe, expect, it } from "vitest";
import type { SlotView } from "../../../../src/objects/methods/groups.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../../../src/limits.ts";
import { resultsPageOf } from "../../../../src/http/replies/results-page.ts";
import { failedView, readerOf, slotView } from "./views.ts";

type Page = { object: string; data: object[]; has_more: boolean; next_after: number | null };

async function pageOf(
  slots: readonly SlotView[],
  { after = -1, limit = 100, style = "bracket" as const, each = 3, count = slots.length } = {},
) {
  const json = await resultsPageOf({ count, style, reader: readerOf(slots, each) }, { after, limit });
  const page: Page = JSON.parse(json);
  return page;
}

const many = (count: number, fields: Partial<SlotView> = {}): SlotView[] =>
  Array.from({ length: count }, (_, index) => slotView({ index, text: `answer ${index}`, ...fields }));

/** The texts on a page. */
const results = (page: { data: object[] }): unknown[] =>
  page.data.map((line) => ("result" in line ? line.result : undefined));

describe("a page of results", () => {
  it("is the whole group where it fits, in input order", async () => {
    const page = await pageOf(many(5));
    expect(page).toMatchObject({ object: "list", has_more: false, next_after: null });
    expect(results(page)).toEqual(["answer 0", "answer 1", "answer 2", "answer 3", "answer 4"]);
  });

  it("holds as many slots as are asked for, and says after which the next begins", async () => {
    const slots = many(5);
    const first = await pageOf(slots, { limit: 2 });
    expect([results(first), first.has_more, first.next_after]).toEqual([["answer 0", "answer 1"], true, 1]);
    const second = await pageOf(slots, { after: 1, limit: 3 });
    expect([results(second), second.has_more, second.next_after]).toEqual([
      ["answer 2", "answer 3", "answer 4"],
      false,
      null,
    ]);
  });

  it("is empty after the last slot, and past it", async () => {
    for (const after of [4, 5, 1_000_000]) {
      expect(await pageOf(many(5), { after })).toEqual({ object: "list", data: [], has_more: false, next_after: null });
    }
  });

  it("leads through all slots once, whatever the sizes", async () => {
    const slots = many(23);
    for (const [limit, each] of [
      [1, 1],
      [4, 3],
      [3, 4],
      [22, 5],
      [23, 23],
    ] as const) {
      const seen: unknown[] = [];
      for (let after: number | null = -1; after !== null;) {
        const page: Awaited<ReturnType<typeof pageOf>> = await pageOf(slots, { after, limit, each });
        expect(page.data.length).toBeLessThanOrEqual(limit);
        seen.push(...results(page));
        after = page.next_after;
      }
      expect(seen).toEqual(slots.map(({ text }) => text));
    }
  });

  it("ends early where answers are large, but never without one", async () => {
    const large = many(4, { text: "x".repeat(RESULTS_REPLY_BYTES_MAX) });
    const page = await pageOf(large, { each: 1 });
    expect([page.data.length, page.has_more, page.next_after]).toEqual([1, true, 0]);
    const below = many(4, { text: "x".repeat(RESULTS_REPLY_BYTES_MAX / 2 - 1) });
    expect((await pageOf(below, { each: 1 })).data).toHaveLength(3);
  });

  it("shows each slot with its measures, and its error in the style of its group beside the truth", async () => {
    const reason = { reason: "cancelled", message: "by the test" } as const;
    const [completed, failed] = (await pageOf([slotView({ id: "a" }), failedView(reason, { index: 1 })])).data;
    expect(completed).toEqual({
      index: 0,
      id: "a",
      status: "completed",
      model: "gpt-x-2026",
      usage: { prompt_tokens: 40, completion_tokens: 7, total_tokens: 47, cost: 0.000054 },
      latency_ms: 812,
      queued_ms: 3,
      attempts: 1,
      finish_reason: "stop",
      estimated: false,
      result: "ok",
      error: null,
      waiting_for: null,
    });
    expect(failed).toMatchObject({
      index: 1,
      status: "failed",
      result: "[error] by the test",
      error: { code: "cancelled", message: "by the test", retryable: false, attempts: 1 },
    });
  });

  it("shows slots that have not ended without a result, an error or measures", async () => {
    const queued = slotView({ state: "queued", attempts: 0, text: null, model: null, finishReason: null });
    const [line] = (await pageOf([queued])).data;
    expect(line).toMatchObject({ status: "queued", result: null, error: null, usage: null, latency_ms: null });
  });

  it("ends where the run object has no more, and can be asked again from there", async () => {
    const page = await pageOf(many(2), { count: 5 });
    expect([page.data.length, page.has_more, page.next_after]).toEqual([2, true, 1]);
  });
});
