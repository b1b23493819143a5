/** When calls leave their provider's batches. */
import { expect, it } from "vitest";
import { liveAtMs } from "../../../../src/run/steps/live-at.ts";

const MINUTE_MS = 60_000;
const minutes = (fields: { deadline: number; count: number; width?: number; marginMs?: number }) => {
  const { deadline, count, width = 10, marginMs = null } = fields;
  return liveAtMs({ openedAtMs: 0, deadlineMs: deadline * MINUTE_MS, count, width, marginMs }) / MINUTE_MS;
};

it("is before the deadline by a cancellation and the time for live calls", () => {
  expect(minutes({ deadline: 60, count: 1 })).toBe(40);
  // 40 rounds of ten calls, of half a minute each.
  expect(minutes({ deadline: 600, count: 400 })).toBe(600 - 12 - 20);
});

it("leaves the provider a quarter of the time, however many calls there are", () => {
  expect(minutes({ deadline: 60, count: 50_000 })).toBe(15);
});

it("is what the operator has set, and not before the group was opened", () => {
  expect(minutes({ deadline: 60, count: 50_000, marginMs: 5 * MINUTE_MS })).toBe(55);
  expect(minutes({ deadline: 60, count: 1, marginMs: 90 * MINUTE_MS })).toBe(0);
});
