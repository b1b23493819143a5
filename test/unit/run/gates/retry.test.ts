import { describe, expect, it } from "vitest";
import { retryDelayMs, type FailedAttempt } from "../../../../src/run/gates/retry.ts";
import { RETRY_AFTER_MAX_MS, RETRY_BASE_MS, RETRY_MAX_MS } from "../../../../src/limits.ts";

const ALMOST_ONE = 1 - Number.EPSILON;
const failed = (fields: Partial<FailedAttempt> = {}): FailedAttempt => ({
  class: "transient",
  attempt: 1,
  attemptsMax: 10,
  retryAfterMs: null,
  ...fields,
});

describe("the next attempt", () => {
  it.each(["transient", "rate_limited", "unknown"] as const)("follows a failure that is %s", (failureClass) => {
    expect(retryDelayMs(failed({ class: failureClass }), 0)).toBe(0);
  });

  it("never follows a rejected one", () => {
    expect(retryDelayMs(failed({ class: "rejected" }), 0)).toBeNull();
    expect(retryDelayMs(failed({ class: "rejected", retryAfterMs: 5 }), 0)).toBeNull();
  });

  it("does not follow the last one", () => {
    expect(retryDelayMs(failed({ attempt: 2, attemptsMax: 3 }), 0)).toBe(0);
    expect(retryDelayMs(failed({ attempt: 3, attemptsMax: 3 }), 0)).toBeNull();
    expect(retryDelayMs(failed({ attempt: 1, attemptsMax: 1 }), 0)).toBeNull();
    expect(retryDelayMs(failed({ attempt: 1, attemptsMax: 0 }), 0)).toBeNull();
  });
});

describe("the delay without a Retry-After", () => {
  it("is drawn from zero to a ceiling that doubles up to its bound", () => {
    const highest = [1, 2, 3, 4, 5, 6, 9].map((attempt) => retryDelayMs(failed({ attempt }), ALMOST_ONE));
    expect(highest).toEqual([799, 1_599, 3_199, 6_399, 9_999, 9_999, 9_999]);
    const lowest = [1, 2, 3, 4, 5, 6, 9].map((attempt) => retryDelayMs(failed({ attempt }), 0));
    expect(lowest).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect([RETRY_BASE_MS, RETRY_MAX_MS]).toEqual([800, 10_000]);
  });

  it("is spread evenly: half the random number is half the ceiling", () => {
    expect(retryDelayMs(failed({ attempt: 3 }), 0.5)).toBe(1_600);
  });
});

describe("the delay with a Retry-After", () => {
  it("is a floor, with jitter on top", () => {
    expect(retryDelayMs(failed({ retryAfterMs: 5_000 }), 0)).toBe(5_000);
    expect(retryDelayMs(failed({ retryAfterMs: 5_000, attempt: 4 }), ALMOST_ONE)).toBe(5_000 + RETRY_BASE_MS - 1);
    expect(retryDelayMs(failed({ retryAfterMs: 0 }), 0)).toBe(0);
  });

  it("is obeyed up to its bound; a longer one ends the call", () => {
    expect(retryDelayMs(failed({ retryAfterMs: RETRY_AFTER_MAX_MS }), 0)).toBe(RETRY_AFTER_MAX_MS);
    expect(retryDelayMs(failed({ retryAfterMs: RETRY_AFTER_MAX_MS + 1 }), 0)).toBeNull();
  });
});
