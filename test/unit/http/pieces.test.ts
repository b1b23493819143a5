/**
 * The rule that no request holds others for more than 250 ms in one piece, counted: how much is read, checked, merged or asked for
 * between two places where others may go on. What a run does in one turn is counted in run/steps/turn-share.test.ts.
 */
import { describe, expect, it } from "vitest";
import { preparing } from "../../../durable-objects/run/requests/append-events.ts";
import { batchReading } from "../../../src/contract/large-batch.ts";
import { clientEventsReading } from "../../../src/contract/events.ts";
import { aggregationOf } from "../../../src/http/replies/aggregation.ts";
import {
  CLIENT_EVENTS_PER_POST_MAX,
  ITEMS_PER_BATCH_MAX,
  LARGE_BODY_BYTES_MIN,
  SLICE_CHARS_MAX,
  SLICE_PIECE_CHARS,
  SUBTREE_LOOKS_AT_ONCE,
} from "../../../src/limits.ts";
import { inWaves } from "../../../src/objects/clients/subtree.ts";
import { atOnce, SliceCount } from "../../../src/text/bytes/slices.ts";
import type { SlotView } from "../../../src/objects/methods/groups.ts";

/** Counts characters between pauses. */
class Pieces {
  readonly chars: number[] = [0];

  did(chars: number): void {
    this.chars.push((this.chars.pop() ?? 0) + chars);
  }

  pause(): void {
    this.chars.push(0);
  }

  get longest(): number {
    return Math.max(...this.chars);
  }
}

/** Steps of sliced work, each of which ends in a pause. */
function stepsOf(work: Iterator<void, unknown>): number {
  let steps = 1;
  while (work.next().done !== true) steps += 1;
  return steps;
}

function slotsOf(texts: readonly string[], from: number): SlotView[] {
  const page = texts.slice(from, from + 1_000);
  return page.map((text, at) => ({ index: from + at, id: null, state: "completed", text }) as SlotView);
}

describe("between two pauses", () => {
  it.each([
    ["3,000 JSON answers are merged", 3_000, 4_000, { strategy: "merge", mode: "json" }],
    ["50,000 tiny answers are merged", 50_000, 24, { strategy: "merge", mode: "json" }],
    ["answers are joined", 3_000, 4_000, { strategy: "merge", mode: "concat", separator: "" }],
  ] as const)("%s for a slice, and one answer more", async (_, count, chars, spec) => {
    const texts = Array.from({ length: count }, (_, at) => `{"a${at}":"${"x".repeat(chars - 12)}"}`);
    const pieces = new Pieces();
    const pause = (): Promise<void> => Promise.resolve(pieces.pause());
    const memberOf = ({ index, id, text }: SlotView) => {
      pieces.did((text ?? "").length + SLICE_PIECE_CHARS);
      return Promise.resolve({ index, id, completed: true, text: text ?? "" });
    };
    const slotsFrom = (from: number) => Promise.resolve(slotsOf(texts, from));
    await aggregationOf(spec, { group: { count }, slotsFrom, memberOf, pause });
    const all = texts.reduce((sum, text) => sum + text.length + SLICE_PIECE_CHARS, 0);
    expect(pieces.longest).toBeLessThan(SLICE_CHARS_MAX + chars + SLICE_PIECE_CHARS + 12);
    expect(pieces.chars.length).toBeGreaterThan(all / (SLICE_CHARS_MAX + chars + 76));
  });

  it("the events of a client are checked for a slice, and one event more", () => {
    const size = 8_000;
    const event = { event_type: "final_result", output: "x".repeat(size) };
    const steps = stepsOf(clientEventsReading(Array.from({ length: CLIENT_EVENTS_PER_POST_MAX }, () => event)));
    const all = CLIENT_EVENTS_PER_POST_MAX * size;
    expect(steps).toBeGreaterThanOrEqual(Math.floor(all / (SLICE_CHARS_MAX + size + 200)));
  });

  it("the same are made ready for the log's rows", () => {
    const json = JSON.stringify({ event_type: "final_result", output: "x".repeat(8_000) });
    const events = Array.from({ length: CLIENT_EVENTS_PER_POST_MAX }, () => ({ json, parallelGroupId: null }));
    // Each is counted and written: the object serves others after 16 of them.
    expect(stepsOf(preparing(events))).toBeGreaterThanOrEqual(CLIENT_EVENTS_PER_POST_MAX / 17);
    expect(atOnce(preparing(events))).toMatchObject({ bytes: CLIENT_EVENTS_PER_POST_MAX * json.length });
  });

  it("a few thousand calls of a small batch are read", () => {
    const bytes = new TextEncoder().encode(JSON.stringify({ prompts: Array(ITEMS_PER_BATCH_MAX).fill("a") }));
    expect(bytes.length).toBeLessThan(LARGE_BODY_BYTES_MIN);
    expect(stepsOf(batchReading(bytes))).toBeGreaterThan((ITEMS_PER_BATCH_MAX * SLICE_PIECE_CHARS) / SLICE_CHARS_MAX);
  });

  it("a quarter of a megabyte of a large batch is read", () => {
    const bytes = new TextEncoder().encode(JSON.stringify({ prompts: Array(8_000).fill("x".repeat(1_000)) }));
    expect(stepsOf(batchReading(bytes))).toBeGreaterThanOrEqual(bytes.length / (256 * 1_100));
  });

  it("so many runs of a subtree are asked", async () => {
    let asked = 0;
    let most = 0;
    const look = async (id: string): Promise<string> => {
      asked += 1;
      most = Math.max(most, asked);
      await Promise.resolve();
      asked -= 1;
      if (id === "r7") throw new Error("unreadable");
      return id;
    };
    const ids = Array.from({ length: 300 }, (_, at) => `r${at}`);
    const looks = await inWaves(ids, look);
    expect(most).toBe(SUBTREE_LOOKS_AT_ONCE);
    expect(looks.map((each) => (each.status === "fulfilled" ? each.value : "r7"))).toEqual(ids);
  });

  it("short pieces count too", () => {
    const slice = new SliceCount();
    const pauses = Array.from({ length: 10_000 }, () => slice.add(0)).filter(Boolean).length;
    expect(pauses).toBe(Math.floor((10_000 * SLICE_PIECE_CHARS) / SLICE_CHARS_MAX));
  });
});
