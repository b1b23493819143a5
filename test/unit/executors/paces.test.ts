import { describe, expect, it } from "vitest";
import { Paces } from "../../../src/executors/paces.ts";
import { MODEL_PACES_KEPT } from "../../../src/limits.ts";

const RULES = { waitingMax: 6, callsMax: 64 };

/** What a model's calls have shown: headers after so long, and answers after so long. */
function shown(headersMs: number, callMs: number): Paces {
  const paces = new Paces();
  paces.requests("m", false);
  paces.headersArrived("m", headersMs);
  paces.answered("m", callMs);
  return paces;
}

describe("how many calls an executor can have in flight", () => {
  it.each([
    // Calls of an LLM: 6 × 20 s ÷ (2 × .7 s) could begin in half a call, more than an executor holds.
    { headersMs: 700, callMs: 20_000, reach: 64 },
    { headersMs: 930, callMs: 20_000, reach: 64 },
    { headersMs: 1_000, callMs: 20_000, reach: 60 },
    { headersMs: 2_000, callMs: 20_000, reach: 30 },
    // Headers that come when the answer is whole.
    { headersMs: 200, callMs: 200, reach: 6 },
    { headersMs: 20_000, callMs: 20_000, reach: 6 },
    { headersMs: 0, callMs: 5, reach: 64 },
  ])("is $reach if headers come after $headersMs ms of $callMs", ({ headersMs, callMs, reach }) => {
    expect(shown(headersMs, callMs).reachOf("m", 0, RULES)).toBe(reach);
  });

  it("is six where the answer is requested as JSON, until one is requested as a stream", () => {
    const paces = shown(1, 20_000);
    paces.requests("m", true);
    expect(paces.reachOf("m", 0, RULES)).toBe(6);
    paces.requests("m", false);
    expect(paces.reachOf("m", 0, RULES)).toBe(64);
  });

  it("falls to six while headers do not come from a model of which nothing is known", () => {
    const reaches = [5, 200, 1_000, 2_500, 60_000].map((waitedMs) => new Paces().reachOf("m", waitedMs, RULES));
    expect(reaches).toEqual([64, 64, 15, 6, 6]);
  });

  it("falls below what was learned if headers do not come as they used to", () => {
    expect(shown(500, 20_000).reachOf("m", 4_000, RULES)).toBe(15);
  });

  it("is as many as may wait for headers where nothing limits them", () => {
    expect(shown(200, 200).reachOf("m", 60_000, { waitingMax: 512, callsMax: 512 })).toBe(512);
  });

  it("follows the recent calls", () => {
    const paces = shown(20_000, 20_000);
    for (let call = 0; call < 20; call++) paces.headersArrived("m", 100);
    expect(paces.reachOf("m", 0, RULES)).toBe(64);
  });

  it("is known of each model by itself, and of as many as are kept", () => {
    const paces = shown(20_000, 20_000);
    expect(paces.reachOf("other", 5, RULES)).toBe(64);
    for (let other = 0; other < MODEL_PACES_KEPT; other++) paces.answered(`other-${other}`, 1);
    expect(paces.reachOf("m", 5, RULES)).toBe(64);
  });
});
