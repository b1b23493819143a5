import { describe, expect, it } from "vitest";
import { pageUrl, summaryLine } from "../../../cli/text/summary.ts";

const ended = {
  ...{ completed: 1_200, failed: 0, replayed: 0, because: null, costUsd: 0.0123, durationMs: 65_000 },
  place: pageUrl("http://g.test", "run_1"),
};

describe("summaryLine", () => {
  it("says how calls ended, what they cost, how long it took, and where the run is", () => {
    expect(summaryLine(ended)).toBe("1,200 calls completed, 0 failed · $0.0123 · 1m05s · http://g.test/ui/runs/run_1");
  });

  it("says what was replayed, and why the first call failed", () => {
    const line = summaryLine({ ...ended, completed: 1, failed: 2, replayed: 1, because: "no \u001b[31msuch\nmodel" });
    expect(line).toContain("1 call completed (1 replayed), 2 failed (no such model) · ");
  });

  it("does not call an unknown cost zero", () => {
    expect(summaryLine({ ...ended, costUsd: null })).toContain(" · cost unknown · ");
    expect(summaryLine({ ...ended, costUsd: 0 })).toContain(" · $0 · ");
  });
});
