import { describe, expect, it } from "vitest";
import { LineBudget } from "../../../src/http/line-budget.ts";
import { CONSOLE_LINES_MAX, CONSOLE_LINES_MS } from "../../../src/limits.ts";

describe("lines that a client can provoke", () => {
  it("are so many in a term, and the next says how many there were", () => {
    let nowMs = 0;
    const budget = new LineBudget(() => nowMs);
    const lines = Array.from({ length: 1_000 }, () => budget.take("a log broke off")).filter((line) => line !== null);
    expect(lines).toHaveLength(CONSOLE_LINES_MAX);
    nowMs = CONSOLE_LINES_MS - 1;
    expect(budget.take("a log broke off")).toBeNull();
    nowMs = CONSOLE_LINES_MS;
    expect(budget.take("a log broke off")).toBe(
      `a log broke off (${1_001 - CONSOLE_LINES_MAX} lines like this were not written)`,
    );
    expect(budget.take("a log broke off")).toBe("a log broke off");
  });
});
