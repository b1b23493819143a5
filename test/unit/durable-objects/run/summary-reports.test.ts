/** When a run reports how far it is to the list of runs. */
import { describe, expect, it } from "vitest";
import { SummaryReports, type SummaryLook } from "../../../../durable-objects/run/summary-reports.ts";
import { SUMMARY_MS, SUMMARY_OF_DAY_MS } from "../../../../src/limits.ts";
import { seeded } from "../../../support/engine.ts";

const look = (more: Partial<SummaryLook> = {}): SummaryLook => {
  return { status: "active", isFinal: false, isBusy: false, ...more };
};
const BUSY = look({ isBusy: true });
const text = (value: string) => () => value;

describe("the summary of a run", () => {
  it("is reported by an instance that is awake, at most every 10 s", () => {
    const reports = new SummaryReports(null, look(), 0);
    expect(reports.afterTurn(BUSY, SUMMARY_MS - 1, text("a"))).toBeNull();
    expect(reports.afterTurn(BUSY, SUMMARY_MS, text("a"))).toBe("a");
    expect(reports.afterTurn(BUSY, 2 * SUMMARY_MS - 1, text("b"))).toBeNull();
    expect(reports.afterTurn(BUSY, 2 * SUMMARY_MS, text("b"))).toBe("b");
  });

  it("is reported at most every 60 s under a budget of the day: its object has openings to take", () => {
    const reports = new SummaryReports("directory", look(), 0);
    expect(reports.afterTurn(BUSY, SUMMARY_OF_DAY_MS - 1, text("a"))).toBeNull();
    expect(reports.afterTurn(BUSY, SUMMARY_OF_DAY_MS, text("a"))).toBe("a");
  });

  it("is not reported again while nothing has changed", () => {
    const reports = new SummaryReports(null, look(), 0);
    expect(reports.afterTurn(BUSY, SUMMARY_MS, text("a"))).toBe("a");
    expect(reports.afterTurn(BUSY, 5 * SUMMARY_MS, text("a"))).toBeNull();
    expect(reports.now(BUSY, 7 * SUMMARY_MS, text("a"))).toBeNull();
  });

  it("is reported at once when a run that was shown as busy rests, and the next report is so much later", () => {
    const reports = new SummaryReports(null, look(), 0);
    expect(reports.afterTurn(BUSY, SUMMARY_MS, text("a"))).toBe("a");
    expect(reports.afterTurn(look(), SUMMARY_MS + 1, text("b"))).toBe("b");
    expect(reports.afterTurn(BUSY, 3 * SUMMARY_MS - 1, text("c"))).toBeNull();
    expect(reports.afterTurn(BUSY, 3 * SUMMARY_MS, text("c"))).toBe("c");
  });

  it("is reported at once when the status changes, and when the run is final", () => {
    const reports = new SummaryReports(null, look(), 0);
    expect(reports.afterTurn(look({ status: "paused" }), 1, text("a"))).toBe("a");
    expect(reports.afterTurn(look({ status: "closed", isBusy: true }), 2, text("b"))).toBe("b");
    expect(reports.afterTurn(look({ status: "closed", isFinal: true }), 3, text("c"))).toBe("c");
    expect(reports.afterTurn(look({ status: "closed", isFinal: true }), 4, text("c"))).toBeNull();
  });

  it("is reported with the alarm by an instance that does not know what the list has, and after a report that failed", async () => {
    const reports = new SummaryReports(null, look(), 0);
    expect(reports.now(look(), 1, text("a"))).toBe("a");
    expect(reports.now(look(), 2, text("a"))).toBeNull();
    expect(await reports.deliver(() => Promise.reject(new Error("gone")))).toBe(false);
    expect(reports.now(look(), 3, text("a"))).toBe("a");
  });

  it.each([1, 2, 3])("costs at most one report per 10 s of any history, and one more (seed %i)", (seed) => {
    const random = seeded(seed);
    const reports = new SummaryReports(null, look(), 0);
    let count = 0;
    let nowMs = 0;
    for (let turn = 0; turn < 20_000; turn++) {
      nowMs += random() * 400;
      const now = look({ isBusy: random() < 0.5 });
      if (reports.afterTurn(now, nowMs, text(String(turn))) !== null) count += 1;
      expect(count).toBeLessThanOrEqual(nowMs / SUMMARY_MS + 1);
    }
    expect(count).toBeGreaterThan((nowMs / SUMMARY_MS) * 0.5);
  });
});
