import { describe, expect, it } from "vitest";
import { Display } from "../../../cli/batch/display.ts";
import { printable } from "../../../cli/text/printable.ts";
import { usdText as usdOnPage } from "../../../ui/model/format.ts";
import { durationText, usdText } from "../../../cli/text/amounts.ts";
import { progressLine, Rate } from "../../../cli/batch/progress.ts";

const lines = { phase: "running", unit: "lines" as const, failed: 0, perSecond: null, costUsd: null };

describe("progressLine", () => {
  it("shows bar, count, failures, rate, cost and time left", () => {
    const shown = { ...lines, done: 1_250, total: 5_000, failed: 24, perSecond: 37.5, costUsd: 0.0123 };
    expect(progressLine(shown, 120)).toBe(
      "███████░░░░░░░░░░░░░░░░░░░░░░░ running · 1,250/5,000 · 24 failed · 37.5/s · $0.0123 · 1m40s left",
    );
  });

  it("shows only what is known", () => {
    expect(progressLine({ ...lines, phase: "validating", done: 0, total: 0 }, 80)).toBe("validating");
    expect(progressLine({ ...lines, done: 0, total: 2 }, 30)).toBe("░░░░░░░░░░░░░ running · 0/2");
    expect(progressLine({ ...lines, done: 2, total: 2, perSecond: 120 }, 20)).toBe("running · 2/2 · 120");
  });

  it("shows an upload in megabytes", () => {
    const sent = { ...lines, phase: "uploading", unit: "bytes" as const, done: 1_572_864, total: 3_145_728 };
    expect(progressLine(sent, 44)).toBe("███████░░░░░░░░ uploading · 1.5 of 3.0 MB");
  });

  it.each([20, 40, 80, 200])("is narrower than %i columns", (columns) => {
    const shown = { ...lines, done: 12_345, total: 50_000, failed: 1_234, perSecond: 9.87, costUsd: 123.45 };
    expect(progressLine(shown, columns).length).toBeLessThan(columns);
  });
});

describe("Rate", () => {
  it("looks back half a minute", () => {
    const rate = new Rate();
    expect(rate.add(0, 100)).toBe(null);
    expect(rate.add(10_000, 200)).toBe(10);
    expect(rate.add(30_000, 400)).toBe(10);
    expect(rate.add(40_000, 400)).toBeCloseTo(200 / 30);
    expect(rate.add(100_000, 400)).toBe(0);
  });
});

describe("figures", () => {
  it.each([
    [0, "$0"],
    [0.5, "$0.5000"],
    [12.345, "$12.35"],
    [1_234.5, "$1,234.50"],
    [0.0123, "$0.0123"],
    [0.004, "$0.0040"],
    [0.00005, "$0.0001"],
    [0.0000012, "<$0.0001"],
  ])("shows %d USD as %s, as the page does", (usd, text) => {
    expect(usdText(usd)).toBe(text);
    expect(usdOnPage(usd)).toBe(text);
  });

  it.each([
    [0, "0s"],
    [59_400, "59s"],
    [59_500, "1m00s"],
    [3_599_000, "59m59s"],
    [7_380_000, "2h03m"],
  ])("shows %d ms as %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});

describe("Display", () => {
  function shown(
    options: { live: boolean; quiet?: boolean },
    show: (display: InstanceType<typeof Display>) => void,
  ): string {
    let text = "";
    const write = (piece: string) => void (text += piece);
    show(new Display({ write, columns: () => 24, quiet: false, ...options }));
    return text;
  }
  const progress = (done: number) => ({ ...lines, done, total: 100 });

  it("redraws the line in place on a terminal, and clears it before a note", () => {
    const text = shown({ live: true }, (display) => {
      display.progress(progress(1));
      display.progress(progress(2));
      display.note("hello");
    });
    expect(text).toBe("\r\u001b[Krunning · 1/100\r\u001b[Krunning · 2/100\r\u001b[Khello\n");
  });

  it("writes notes and no progress where nothing can be redrawn", () => {
    const text = shown({ live: false }, (display) => {
      for (let done = 0; done <= 100; done += 1) display.progress(progress(done));
      display.note("note");
    });
    expect(text).toBe("note\n");
  });

  it("says nothing but errors when it is quiet", () => {
    const text = shown({ live: true, quiet: true }, (display) => {
      display.progress(progress(1));
      display.note("note");
      display.error("error");
    });
    expect(text).toBe("error\n");
  });
});

describe("printable", () => {
  it("takes away what moves a cursor, forges a line or turns the text around", () => {
    expect(printable("a\u001b[2J\u001b]0;title\u0007b\r\nok\u202e\u0000\u009b1mc")).not.toMatch(/[\p{C}]/u);
    expect(printable("one\ntwo\u2028three")).toBe("one two three");
  });

  it("keeps 500 characters and no more", () => {
    expect(printable("x".repeat(500))).toHaveLength(500);
    expect(printable("x".repeat(501))).toHaveLength(500);
  });
});
