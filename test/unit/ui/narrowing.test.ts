import { expect, it } from "vitest";
import { narrowingIn } from "../../../ui/model/narrowing.ts";
import { readQueue } from "../../../ui/model/queue.ts";
import { RunState } from "../../../ui/model/run-state.ts";

const BY = { by: "budget", dimension: "usd", width: 6, of: 64, share: 0.97, per_call: 0.004, remedy: "set max_tokens" };
const TEXT = "The budget lets 6 of 64 calls run at once, because each reserves $0.0040: set max_tokens.";

it("says how narrow a batch is, why, and what helps", () => {
  expect(narrowingIn({ narrowed_by: BY })).toBe(TEXT);
  const byTokens = { ...BY, dimension: "completion_tokens", per_call: 4_096 };
  expect(narrowingIn({ narrowed_by: byTokens })).toContain("because each reserves 4,096 completion tokens: ");
});

it("says nothing where nothing is narrow, or what came is not what it knows", () => {
  for (const owner of [{}, { narrowed_by: null }, { narrowed_by: "x" }]) expect(narrowingIn(owner)).toBeNull();
});

it("is read from the queue of a running run, and from the end of a group", () => {
  const queue = { in_flight: 6, queued: 10, waiting_for: [] };
  expect(readQueue({ queue: { ...queue, narrowed_by: BY } })?.narrowing).toBe(TEXT);
  expect(readQueue({ queue })?.narrowing).toBeNull();
  const state = new RunState();
  const line = (seq: number, type: string, fields: Record<string, unknown>) => ({
    ...{ seq, atMs: seq, type, group: "pg-1" },
    fields,
  });
  state.apply(line(1, "group_started", { count: 16 }));
  expect(state.narrowing).toBeNull();
  state.apply(line(2, "group_completed", { count: 16, status: "completed", narrowed_by: BY }));
  expect(state.narrowing).toBe(TEXT);
});
