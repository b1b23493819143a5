import { describe, expect, it } from "vitest";
import { Prefixes } from "../../../../src/run/learned/prefixes.ts";
import { PREFIXES_KEPT } from "../../../../src/limits.ts";

const KEPT_MS = 300_000;
const WAIT_MS = 5_000;
const leading = (attemptId: string) => ({ attemptId, waitMs: WAIT_MS });

/** A prefix whose leader has started at 0. */
function led(): Prefixes {
  const prefixes = new Prefixes();
  expect(prefixes.mayStart("p", 0)).toBe(true);
  expect(prefixes.start("p", leading("a"), 0)).toBe(true);
  return prefixes;
}

describe("the calls with one prefix", () => {
  it("wait for the first of them until its answer begins, and those with another do not", () => {
    const prefixes = led();
    expect(prefixes.mayStart("p", 1)).toBe(false);
    expect(prefixes.mayStart("q", 1)).toBe(true);
    expect(prefixes.begun("b", KEPT_MS, 2)).toBe(false);
    expect(prefixes.begun("a", KEPT_MS, 2)).toBe(true);
    expect(prefixes.mayStart("p", 2)).toBe(true);
    expect(prefixes.start("p", leading("b"), 2)).toBe(false);
    expect(prefixes.nextMs(2)).toBeNull();
  });

  it("wait for it no longer than configured", () => {
    const prefixes = led();
    expect(prefixes.nextMs(0)).toBe(WAIT_MS);
    expect(prefixes.mayStart("p", WAIT_MS - 1)).toBe(false);
    expect(prefixes.mayStart("p", WAIT_MS)).toBe(true);
    // Its answer may still come: nobody else leads.
    expect(prefixes.start("p", leading("b"), WAIT_MS)).toBe(false);
    expect(prefixes.nextMs(WAIT_MS)).toBeNull();
  });

  it("have another one lead if it ends without an answer", () => {
    const prefixes = led();
    prefixes.gone("a");
    expect(prefixes.mayStart("p", 1)).toBe(true);
    expect(prefixes.start("p", leading("b"), 1)).toBe(true);
    expect(prefixes.mayStart("p", 1)).toBe(false);
  });

  it("keep the entry by their use, and one of them leads again after its life", () => {
    const prefixes = led();
    prefixes.begun("a", KEPT_MS, 10);
    prefixes.gone("a");
    prefixes.used("p", KEPT_MS, 1_000);
    expect(prefixes.start("p", leading("b"), KEPT_MS + 999)).toBe(false);
    expect(prefixes.start("p", leading("c"), KEPT_MS + 1_000)).toBe(true);
  });

  it("are forgotten, the oldest first, before they are too many", () => {
    const prefixes = led();
    for (let at = 0; at < PREFIXES_KEPT; at++) prefixes.start(`p${at}`, leading(`a${at}`), 1);
    expect(prefixes.mayStart("p", 1)).toBe(true);
    expect(prefixes.mayStart("p0", 1)).toBe(false);
    expect(prefixes.begun("a", KEPT_MS, 2)).toBe(false);
  });
});

describe("prefixes that were sent", () => {
  it("are known, up to a number, also if nobody has marked them", () => {
    const prefixes = new Prefixes();
    expect(prefixes.wasSent("p0")).toBe(false);
    for (let at = 0; at < PREFIXES_KEPT; at++) prefixes.sent(`p${at}`);
    expect(prefixes.wasSent("p0")).toBe(true);
    prefixes.sent("one more");
    expect([prefixes.wasSent("p0"), prefixes.wasSent("p1")]).toEqual([false, true]);
  });
});
