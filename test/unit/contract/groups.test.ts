import { describe, expect, it } from "vitest";
import { parseGroupQuery, parseIdempotencyKey, parseResultsQuery, prefersAsync } from "../../../src/contract/groups.ts";
import type { Parsed } from "../../../src/contract/errors.ts";
import {
  GROUP_WAIT_MS_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  RESULTS_PAGE_DEFAULT,
  RESULTS_PAGE_MAX,
} from "../../../src/limits.ts";

/** The field that a refusal names; fails where there is none. */
function param(read: Parsed<unknown>): unknown {
  if (read.ok || read.reason.reason !== "invalid_request") throw new Error("expected a refusal");
  return read.reason.param;
}

describe("an Idempotency-Key", () => {
  it("may be left out", () => {
    expect(parseIdempotencyKey(undefined)).toEqual({ ok: true, value: null });
  });

  it.each(["k", "4f3c2b1a-0000-4000-8000-000000000000", "!~", '"quoted"', "a".repeat(255)])(
    "is any visible ASCII text of up to 255 characters: %s",
    (key) => {
      expect(parseIdempotencyKey(key)).toEqual({ ok: true, value: key });
    },
  );

  it("has one character at least and 255 at most", () => {
    expect(IDEMPOTENCY_KEY_CHARS_MAX).toBe(255);
    expect(param(parseIdempotencyKey(""))).toBe("idempotency-key");
    expect(param(parseIdempotencyKey("a".repeat(256)))).toBe("idempotency-key");
  });

  it.each(["a b", " a", "a\n", "a\tb", "a\0", "a\x7f", "\x1f", "é", "a\u2028", "😀"])(
    "has nothing in it that a log or a header could stumble over: %j",
    (key) => {
      expect(param(parseIdempotencyKey(key))).toBe("idempotency-key");
    },
  );
});

describe("a look at a group", () => {
  it("does not wait unless it is asked to, and then as long as it says, up to a bound", () => {
    expect(parseGroupQuery({})).toEqual({ ok: true, value: { waitMs: 0 } });
    expect(parseGroupQuery({ wait_ms: "0" })).toEqual({ ok: true, value: { waitMs: 0 } });
    expect(parseGroupQuery({ wait_ms: String(GROUP_WAIT_MS_MAX) })).toEqual({
      ok: true,
      value: { waitMs: GROUP_WAIT_MS_MAX },
    });
    expect(param(parseGroupQuery({ wait_ms: String(GROUP_WAIT_MS_MAX + 1) }))).toBe("wait_ms");
  });

  it.each(["-1", "1.5", "soon", "Infinity", "NaN"])("does not wait for %s", (waitMs) => {
    expect(param(parseGroupQuery({ wait_ms: waitMs }))).toBe("wait_ms");
  });

  it("refuses what it does not know, by name", () => {
    expect(parseGroupQuery({ wait: "1" })).toMatchObject({
      ok: false,
      reason: { message: expect.stringContaining("wait") },
    });
  });
});

describe("a page of results", () => {
  it("begins at the first slot and has the usual number, unless it is asked otherwise", () => {
    expect(parseResultsQuery({})).toEqual({ ok: true, value: { after: -1, limit: RESULTS_PAGE_DEFAULT } });
    expect(parseResultsQuery({ after: "41", limit: "7" })).toEqual({ ok: true, value: { after: 41, limit: 7 } });
  });

  it("is bounded on both sides", () => {
    expect(parseResultsQuery({ after: "-1", limit: "1" })).toEqual({ ok: true, value: { after: -1, limit: 1 } });
    expect(param(parseResultsQuery({ after: "-2" }))).toBe("after");
    expect(param(parseResultsQuery({ limit: "0" }))).toBe("limit");
    expect(parseResultsQuery({ limit: String(RESULTS_PAGE_MAX) }).ok).toBe(true);
    expect(param(parseResultsQuery({ limit: String(RESULTS_PAGE_MAX + 1) }))).toBe("limit");
    expect(param(parseResultsQuery({ after: "x" }))).toBe("after");
  });
});

describe("a preference for an answer before the work is done", () => {
  it.each([
    "respond-async",
    "Respond-Async",
    "respond-async, wait=10",
    "wait=10 , respond-async",
    "handling=lenient,respond-async;x=1",
    "respond-async ; foo",
  ])("is heard in %j", (header) => {
    expect(prefersAsync(header)).toBe(true);
  });

  it.each([
    undefined,
    "",
    "wait=10",
    "respond-asynchronously",
    "no-respond-async",
    "return=respond-async",
    "x; respond-async",
  ])("is not heard in %j", (header) => {
    expect(prefersAsync(header)).toBe(false);
  });
});
