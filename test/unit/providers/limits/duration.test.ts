import { describe, expect, it } from "vitest";
import { readResetMs } from "../../../../src/providers/limits/duration.ts";

const NOW_MS = Date.parse("2026-11-22T10:00:00Z");

describe("readResetMs", () => {
  it.each([
    ["6m0s", 360_000],
    ["20ms", 20],
    ["1s", 1_000],
    ["2m59.56s", 179_560],
    ["1h2m3s", 3_723_000],
    ["1d", 86_400_000],
    ["0s", 0],
  ])("reads OpenAI's and Groq's duration %s", (text, ms) => {
    expect(readResetMs(text, NOW_MS)).toBeCloseTo(ms, 6);
  });

  it.each([
    ["11.382", 11_382],
    ["37", 37_000],
    ["0", 0],
  ])("reads %s as seconds, as Azure and Cerebras write it", (text, ms) => {
    expect(readResetMs(text, NOW_MS)).toBeCloseTo(ms, 6);
  });

  it("reads points in time: seconds and ms since 1970, and RFC 3339", () => {
    expect(readResetMs(String(NOW_MS / 1_000 + 30), NOW_MS)).toBe(30_000);
    expect(readResetMs(String(NOW_MS + 250), NOW_MS)).toBe(250);
    expect(readResetMs("2026-11-22T10:00:12Z", NOW_MS)).toBe(12_000);
    expect(readResetMs("2026-11-22T10:00:12.5+00:00", NOW_MS)).toBe(12_500);
  });

  it("reads a time in the past as now", () => {
    expect(readResetMs("2026-11-22T09:59:00Z", NOW_MS)).toBe(0);
    expect(readResetMs(String(NOW_MS / 1_000 - 5), NOW_MS)).toBe(0);
  });

  it.each(["", "soon", "-1", "6m0", "5 s", "1e9", "NaN", "2026-11-22", "12parsecs"])("does not read %j", (text) => {
    expect(readResetMs(text, NOW_MS)).toBeNull();
  });
});
