import { describe, expect, it } from "vitest";
import { Upstreams } from "../../../../src/run/gates/gates.ts";

const acme = { gate: "acme", model: "m", maxInFlight: 2 };
const TOKENS = { input: 10, all: 30 };

describe("an upstream without a gate object", () => {
  it("takes attempts up to its limit, and another when one has ended", () => {
    const upstreams = new Upstreams(false);
    upstreams.add(acme);
    upstreams.attemptStarted(acme, TOKENS, 0);
    expect(upstreams.mayStart("acme", 0)).toBe(true);
    upstreams.attemptStarted(acme, TOKENS, 0);
    expect(upstreams.mayStart("acme", 0)).toBe(false);
    upstreams.attemptEnded(acme);
    expect([upstreams.mayStart("acme", 0), upstreams.get("acme")?.inFlight]).toEqual([true, 1]);
  });

  it("has the largest limit of its targets: that of a model that is not configured any more does not count", () => {
    const upstreams = new Upstreams(false);
    upstreams.attemptStarted({ gate: "acme", model: "m", maxInFlight: 0 }, null, 0);
    expect(upstreams.mayStart("acme", 0)).toBe(false);
    upstreams.add(acme);
    expect(upstreams.mayStart("acme", 0)).toBe(true);
    upstreams.attemptEnded({ gate: "acme", model: "m", maxInFlight: 0 });
    expect(upstreams.get("acme")).toMatchObject({ inFlight: 0, maxInFlight: 2 });
  });

  it("is not checked while no target of it is known", () => {
    const upstreams = new Upstreams(false);
    expect([upstreams.mayStart("", 0), upstreams.get("acme")]).toEqual([true, undefined]);
  });

  it("takes nothing until its Retry-After has passed, the longest of several, and others are not affected", () => {
    const upstreams = new Upstreams(false);
    upstreams.add({ gate: "other", maxInFlight: 1 });
    upstreams.add(acme).cool(1_500, "requests_per_minute");
    upstreams.add(acme).cool(1_200, "requests_per_minute");
    expect([upstreams.mayStart("acme", 1_499), upstreams.mayStart("acme", 1_500)]).toEqual([false, true]);
    expect(upstreams.mayStart("other", 1_000)).toBe(true);
    expect([upstreams.nextReadyMs(1_499), upstreams.nextReadyMs(1_500)]).toEqual([1_500, null]);
  });

  it("that is ready first decides when the next attempt may start", () => {
    const upstreams = new Upstreams(false);
    upstreams.add(acme).cool(900, "requests_per_minute");
    upstreams.add({ gate: "other", maxInFlight: 1 }).cool(300, "requests_per_minute");
    expect([upstreams.nextReadyMs(0), upstreams.nextReadyMs(300)]).toEqual([300, 900]);
  });
});
