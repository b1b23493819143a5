/** Outputs that are kept for their dependents: within a bound, and never another's. */
import { describe, expect, it } from "vitest";
import { KeptOutputs } from "../../../../../durable-objects/run/store/kept-outputs.ts";
import { outputsFrom } from "../../../../../durable-objects/run/store/outputs.ts";
import { freshRecord, type SlotRecord } from "../../../../../src/run/group/record.ts";
import type { SlotState } from "../../../../../src/run/queue/slot.ts";
import { OUTPUTS_KEPT_CHARS_MAX } from "../../../../../src/limits.ts";

const record = (id: number, state: SlotState, text: string | null = null): SlotRecord => ({
  ...freshRecord(id),
  state,
  text,
});

/** Rows that count how often they are read. */
function counted(records: readonly SlotRecord[]) {
  const reads = { one: 0, from: 0 };
  const rows = {
    one: (id: number) => {
      reads.one += 1;
      return records.find((each) => each.id === id) ?? null;
    },
    *from(_group: number, fromIndex = 0) {
      reads.from += 1;
      yield* records.filter(({ id }) => id % 65_536 >= fromIndex);
    },
  };
  return { rows, reads };
}

describe("kept outputs", () => {
  it("are within their bound: what was read longest ago goes first", () => {
    const kept = new KeptOutputs();
    const half = "x".repeat(OUTPUTS_KEPT_CHARS_MAX / 2 - 50);
    kept.keep(1, half);
    kept.keep(2, half);
    expect([kept.get(2), kept.get(1)]).toEqual([half, half]);
    kept.keep(3, "small");
    expect([kept.get(1), kept.get(2), kept.get(3)]).toEqual([half, undefined, "small"]);
  });

  it("do not keep what is larger than all that is kept", () => {
    const kept = new KeptOutputs();
    kept.keep(1, "x".repeat(OUTPUTS_KEPT_CHARS_MAX));
    expect(kept.get(1)).toBeUndefined();
    kept.keep(2, "small");
    expect(kept.get(2)).toBe("small");
  });

  it("count failures, too", () => {
    const kept = new KeptOutputs();
    for (let id = 0; id < 100_000; id++) kept.keep(id, null);
    expect([kept.get(0), kept.get(99_999)]).toEqual([undefined, null]);
  });
});

describe("the outputs of slots", () => {
  const stored = [record(65_536, "completed", "a"), record(65_537, "failed"), record(65_538, "queued", "cut answer")];

  it("are read from their rows once, but those of slots that have not ended each time", () => {
    const kept = new KeptOutputs();
    const { rows, reads } = counted(stored);
    const read = (firstId: number) => outputsFrom({ rows, engine: null, kept }, { firstId, count: 1 })[0];
    expect([65_536, 65_537, 65_538, 65_539].map(read)).toEqual(["a", null, null, null]);
    expect(reads.one).toBe(4);
    expect([65_536, 65_537, 65_538, 65_539].map(read)).toEqual(["a", null, null, null]);
    expect(reads.one).toBe(6);
  });

  it("of a task are read in one statement if one of them is not at hand", () => {
    const kept = new KeptOutputs();
    const { rows, reads } = counted(stored);
    kept.keep(65_536, "a");
    const all = () => outputsFrom({ rows, engine: null, kept }, { firstId: 65_536, count: 2 });
    expect([all(), all()]).toEqual([
      ["a", null],
      ["a", null],
    ]);
    expect(reads).toEqual({ one: 0, from: 1 });
  });

  it("are what the present turn will write, before what was written", () => {
    const { rows, reads } = counted(stored);
    const engine = {
      unwrittenSlot: (id: number) => (id === 65_538 ? record(id, "completed", "whole answer") : undefined),
    };
    const outputs = outputsFrom({ rows, engine, kept: new KeptOutputs() }, { firstId: 65_538, count: 1 });
    expect([outputs, reads.one]).toEqual([["whole answer"], 0]);
  });
});
