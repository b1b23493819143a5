import { describe, expect, it } from "vitest";
import { parseRun, parseRunListQuery, parseRunLookQuery } from "../../../src/contract/runs.ts";
import {
  BUDGET_COUNT_MAX,
  BUDGET_USD_MAX,
  DEPTH_MAX,
  EXPIRES_S_MAX,
  METADATA_BYTES_MAX,
  MODEL_PATTERNS_MAX,
  NAME_CHARS_MAX,
  WINDOW_MS_MAX,
} from "../../../src/limits.ts";

function accepts(value: unknown): void {
  expect(parseRun(value)).toEqual({ ok: true, value });
}

function param(value: unknown): unknown {
  const read = parseRun(value);
  if (read.ok || read.reason.reason !== "invalid_request") throw new Error("expected a refusal");
  return read.reason.param;
}

describe("a request for a run", () => {
  it("may say nothing", () => {
    accepts({});
  });

  it("may say everything", () => {
    accepts({
      name: "summarise",
      budget: { usd: 0.5, calls: 200, prompt_tokens: 2_000_000, completion_tokens: 200_000, new_tokens: 2_200_000 },
      max_parallel: 8,
      max_depth: 3,
      expires_in_s: 3_600,
      models: ["openai/*"],
      default_model: "openai/gpt-x",
      error_style: "bracket",
      window_ms: 50,
      unpriced: "refuse",
      metadata: { team: { name: "x" } },
    });
  });

  it("may have a budget of nothing, and no cap of its own", () => {
    accepts({
      budget: { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 },
      max_parallel: 0,
      max_depth: 0,
      window_ms: 0,
    });
  });

  it("is accepted at each bound and refused beyond it", () => {
    accepts({ budget: { usd: BUDGET_USD_MAX, calls: BUDGET_COUNT_MAX } });
    expect(param({ budget: { usd: BUDGET_USD_MAX + 0.01 } })).toBe("budget.usd");
    expect(param({ budget: { calls: BUDGET_COUNT_MAX + 1 } })).toBe("budget.calls");
    accepts({ max_parallel: 4_096, max_depth: DEPTH_MAX, expires_in_s: EXPIRES_S_MAX, window_ms: WINDOW_MS_MAX });
    expect(param({ max_parallel: 4_097 })).toBe("max_parallel");
    expect(param({ max_depth: DEPTH_MAX + 1 })).toBe("max_depth");
    expect(param({ expires_in_s: EXPIRES_S_MAX + 1 })).toBe("expires_in_s");
    expect(param({ expires_in_s: 0 })).toBe("expires_in_s");
    expect(param({ window_ms: WINDOW_MS_MAX + 1 })).toBe("window_ms");
    accepts({ name: "n".repeat(NAME_CHARS_MAX), models: Array.from({ length: MODEL_PATTERNS_MAX }, () => "*") });
    expect(param({ name: "n".repeat(NAME_CHARS_MAX + 1) })).toBe("name");
    expect(param({ models: Array.from({ length: MODEL_PATTERNS_MAX + 1 }, () => "*") })).toBe("models");
  });

  it("is refused with negative, endless, broken or textual numbers", () => {
    for (const usd of [-0.01, JSON.parse("1e999"), JSON.parse("-1e999"), Number.NaN, "1", null]) {
      expect(param({ budget: { usd } })).toBe("budget.usd");
    }
    for (const calls of [-1, 1.5, "3"]) expect(param({ budget: { calls } })).toBe("budget.calls");
    expect(param({ max_parallel: -1 })).toBe("max_parallel");
    expect(param({ budget: [] })).toBe("budget");
  });

  it("is refused with unknown fields, at the top and inside", () => {
    expect(param({ budgets: {} })).toBe("budgets");
    expect(param({ budget: { eur: 1 } })).toBe("budget.eur");
  });

  it("is refused with names that a log line cannot contain", () => {
    for (const name of ["", "a\nb", "\ud800", "a\0"]) expect(param({ name })).toBe("name");
    expect(param({ models: ["ok", ""] })).toBe("models[1]");
    expect(param({ models: [] })).toBe("models");
  });

  it("is refused with words that mean nothing", () => {
    expect(param({ error_style: "loud" })).toBe("error_style");
    expect(param({ unpriced: "maybe" })).toBe("unpriced");
  });

  it("bounds metadata in bytes and in depth", () => {
    const frame = JSON.stringify({ a: "" }).length;
    accepts({ metadata: { a: "x".repeat(METADATA_BYTES_MAX - frame) } });
    expect(param({ metadata: { a: "x".repeat(METADATA_BYTES_MAX - frame + 1) } })).toBe("metadata");
    expect(param({ metadata: { a: JSON.parse("[".repeat(100_000) + "]".repeat(100_000)) } })).toBe("metadata");
    expect(param({ metadata: [] })).toBe("metadata");
  });
});

describe("the query of a list of runs", () => {
  it("reads numbers from text and refuses what it does not know", () => {
    expect(parseRunListQuery({ limit: "20", cursor: "abc" })).toEqual({
      ok: true,
      value: { limit: 20, cursor: "abc" },
    });
    expect(parseRunListQuery({})).toEqual({ ok: true, value: {} });
    for (const limit of ["0", "101", "x", "1.5"]) {
      expect(parseRunListQuery({ limit })).toMatchObject({ ok: false, reason: { param: "limit" } });
    }
    expect(parseRunListQuery({ page: "2" })).toMatchObject({ ok: false, reason: { param: "page" } });
  });
});

describe("a look at a run", () => {
  it("includes the runs below it if the query says so, and refuses what it cannot read", () => {
    expect(parseRunLookQuery({})).toEqual({ ok: true, value: { subtree: false, queue: false } });
    expect(parseRunLookQuery({ subtree: "0" })).toEqual({ ok: true, value: { subtree: false, queue: false } });
    expect(parseRunLookQuery({ subtree: "1" })).toEqual({ ok: true, value: { subtree: true, queue: false } });
    expect(parseRunLookQuery({ queue: "1" })).toEqual({ ok: true, value: { subtree: false, queue: true } });
    expect(parseRunLookQuery({ subtree: "yes" })).toMatchObject({ ok: false, reason: { param: "subtree" } });
    expect(parseRunLookQuery({ subtre: "1" })).toMatchObject({ ok: false, reason: { param: "subtre" } });
  });
});
