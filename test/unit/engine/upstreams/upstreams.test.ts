import { describe, expect, it } from "vitest";
import { Upstreams } from "../../../../src/engine/upstreams/upstreams.ts";
import { RETRY_AFTER_MAX_MS } from "../../../../src/limits.ts";

const acme = { gate: "acme", maxInFlight: 2 };

describe("an upstream", () => {
  it("takes attempts up to its limit, and another when one has ended", () => {
    const upstreams = new Upstreams();
    upstreams.add(acme);
    upstreams.attemptStarted(acme);
    expect(upstreams.mayStart("acme", 0)).toBe(true);
    upstreams.attemptStarted(acme);
    expect(upstreams.mayStart("acme", 0)).toBe(false);
    upstreams.attemptEnded(acme);
    expect([upstreams.mayStart("acme", 0), upstreams.get("acme")?.inFlight]).toEqual([true, 1]);
  });

  it("has the largest limit of its targets: that of a model that is not configured any more does not count", () => {
    const upstreams = new Upstreams();
    upstreams.attemptStarted({ gate: "acme", maxInFlight: 0 });
    expect(upstreams.mayStart("acme", 0)).toBe(false);
    upstreams.add(acme);
    expect(upstreams.mayStart("acme", 0)).toBe(true);
    upstreams.attemptEnded({ gate: "acme", maxInFlight: 0 });
    expect(upstreams.get("acme")).toMatchObject({ inFlight: 0, maxInFlight: 2 });
  });

  it("is not checked while no target of it is known", () => {
    expect([new Upstreams().mayStart("", 0), new Upstreams().get("acme")]).toEqual([true, undefined]);
  });

  it("takes nothing until its Retry-After has passed, the longest of several, and others are not affected", () => {
    const upstreams = new Upstreams();
    upstreams.add({ gate: "other", maxInFlight: 1 });
    upstreams.rateLimited(acme, 500, 1_000);
    upstreams.rateLimited(acme, 100, 1_100);
    expect([upstreams.mayStart("acme", 1_499), upstreams.mayStart("acme", 1_500)]).toEqual([false, true]);
    expect(upstreams.mayStart("other", 1_000)).toBe(true);
    expect([upstreams.nextReadyMs(1_499), upstreams.nextReadyMs(1_500)]).toEqual([1_500, null]);
  });

  it("obeys a Retry-After up to its bound, and ignores a longer one", () => {
    const upstreams = new Upstreams();
    upstreams.rateLimited(acme, RETRY_AFTER_MAX_MS + 1, 0);
    expect([upstreams.mayStart("acme", 0), upstreams.nextReadyMs(0)]).toEqual([true, null]);
    upstreams.rateLimited(acme, RETRY_AFTER_MAX_MS, 0);
    expect(upstreams.nextReadyMs(0)).toBe(RETRY_AFTER_MAX_MS);
  });

  it("that is ready first decides when the next attempt may start", () => {
    const upstreams = new Upstreams();
    upstreams.rateLimited(acme, 900, 0);
    upstreams.rateLimited({ gate: "other", maxInFlight: 1 }, 300, 0);
    expect([upstreams.nextReadyMs(0), upstreams.nextReadyMs(300)]).toEqual([300, 900]);
  });
});
