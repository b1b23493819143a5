import { describe, expect, it } from "vitest";
import { lastsMs, type Unwanted } from "../../../src/executors/unwanted.ts";
import { CALL_MS_ASSUMED, SEEN_MARGIN_TOKENS, UNWANTED_END_MS, WORKER_LEAVE_MS } from "../../../src/limits.ts";

const attempt = (more: Partial<Unwanted> = {}): number =>
  lastsMs({ elapsedMs: 100, callMs: 2_000, capTokens: 4_096, abortCost: "reservation", ...more });

describe("an attempt whose answer nobody wants, and whose abort is charged its reservation,", () => {
  it("may go on until it is late: an abort is never cheaper", () => {
    expect(attempt()).toBe(7_900);
    expect(attempt({ elapsedMs: 7_999 })).toBe(1);
  });

  it("is aborted once it is late: it may never end", () => {
    expect(attempt({ elapsedMs: 8_000 })).toBe(0);
    expect(attempt({ callMs: null, elapsedMs: 4 * CALL_MS_ASSUMED })).toBe(0);
  });

  it("is not late before a short answer could be there, however fast the calls before were", () => {
    expect(attempt({ callMs: 5, elapsedMs: 1_000 })).toBe(CALL_MS_ASSUMED - 1_000);
  });

  it("is aborted if it would not end while its Worker may work", () => {
    expect(attempt({ callMs: UNWANTED_END_MS + 101 })).toBe(0);
    expect(attempt({ callMs: UNWANTED_END_MS + 100 })).toBe(UNWANTED_END_MS);
    expect(UNWANTED_END_MS).toBeLessThan(WORKER_LEAVE_MS);
  });

  it("may go on for the time of a short answer if no call of its model has ended", () => {
    expect(attempt({ callMs: null })).toBe(CALL_MS_ASSUMED);
  });
});

describe("an attempt whose abort is charged what was seen", () => {
  const seen = { abortCost: "seen" } as const;

  it("is aborted at once if most of its answer may be ahead", () => {
    expect(attempt(seen)).toBe(0);
    expect(attempt({ ...seen, callMs: null })).toBe(0);
    expect(attempt({ ...seen, capTokens: null })).toBe(0);
  });

  it("may go on if it is nearly done", () => {
    expect(attempt({ ...seen, elapsedMs: 1_499 })).toBe(0);
    expect(attempt({ ...seen, elapsedMs: 1_500 })).toBe(6_500);
  });

  it("may go on if the margin of an abort is charged as much as its whole answer", () => {
    expect(attempt({ ...seen, capTokens: SEEN_MARGIN_TOKENS })).toBe(7_900);
    expect(attempt({ ...seen, capTokens: SEEN_MARGIN_TOKENS + 1 })).toBe(0);
  });
});
