import { describe, expect, it } from "vitest";
import { Attached } from "../../../durable-objects/run/attached.ts";
import { LEASE_TTL_MS } from "../../../src/limits.ts";

describe("a group that ends with its client", () => {
  it("lapses exactly when nobody has followed it for the term of a lease", () => {
    const attached = new Attached();
    attached.seen(1, 100);
    attached.seen(2, 101);
    expect(attached.lapsed(99 + LEASE_TTL_MS)).toEqual([]);
    expect(attached.lapsed(100 + LEASE_TTL_MS)).toEqual([1]);
    expect(attached.lapsed(101 + LEASE_TTL_MS)).toEqual([1, 2]);
  });

  it("lives on with each look at it", () => {
    const attached = new Attached();
    attached.seen(1, 0);
    attached.seen(1, 20_000);
    expect(attached.lapsed(LEASE_TTL_MS)).toEqual([]);
    expect(attached.lapsed(20_000 + LEASE_TTL_MS)).toEqual([1]);
  });

  it("is not waited for once it has ended", () => {
    const attached = new Attached();
    attached.seen(1, 0);
    attached.forget(1);
    expect(attached.lapsed(Number.MAX_SAFE_INTEGER)).toEqual([]);
  });
});
