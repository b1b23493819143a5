import { describe, expect, it } from "vitest";
import { LeaseEnds } from "../../../../src/run/leases/lease-ends.ts";
import { seeded } from "../../../support/engine.ts";

/** Leases in flight, and how often the end of one was read. */
class Leases {
  readonly inFlight = new Set<Lease>();
  readonly ends = new LeaseEnds<Lease>(this.inFlight);
  reads = 0;

  begin(endMs: number): Lease {
    const lease = new Lease(this, endMs);
    this.inFlight.add(lease);
    this.ends.add(lease);
    return lease;
  }

  /** The first end, found by a visit to all. */
  get firstMs(): number | null {
    const all = Array.from(this.inFlight, ({ endMs }) => endMs);
    return all.length === 0 ? null : Math.min(...all);
  }
}

class Lease {
  readonly #all: Leases;
  endMs: number;

  constructor(all: Leases, endMs: number) {
    this.#all = all;
    this.endMs = endMs;
  }

  get expiresAtMs(): number {
    this.#all.reads += 1;
    return this.endMs;
  }

  set expiresAtMs(endMs: number) {
    this.endMs = endMs;
  }
}

describe("the first end of the leases in flight", () => {
  it("is none while none is in flight", () => {
    const leases = new Leases();
    expect(leases.ends.firstMs()).toBeNull();
    leases.inFlight.delete(leases.begin(5));
    expect(leases.ends.firstMs()).toBeNull();
  });

  it.each([1, 2, 3, 4])("is what a visit to all finds, whatever begins, ends and moves (seed %i)", (seed) => {
    const random = seeded(seed);
    const leases = new Leases();
    let known: Lease[] = [];
    for (let step = 0; step < 3_000; step++) {
      const lease = known[Math.floor(random() * known.length)];
      const kind = random();
      if (lease === undefined || kind < 0.4) known.push(leases.begin(Math.floor(random() * 1_000)));
      else if (kind < 0.75) leases.ends.set(lease, Math.floor(random() * 1_000));
      else {
        leases.inFlight.delete(lease);
        known = known.filter((each) => each !== lease);
      }
      expect(leases.ends.firstMs()).toBe(leases.firstMs);
    }
  });

  it("is found without a visit to all: a run of 4,096 attempts reads a few ends for each that begins or is renewed", () => {
    const leases = new Leases();
    const width = 4_096;
    for (let at = 0; at < width; at++) leases.begin(30_000 + at);
    leases.reads = 0;
    let changes = 0;
    for (let nowMs = 0; nowMs < 4_000; nowMs++) {
      const [oldest] = leases.inFlight;
      if (oldest === undefined) throw new Error("none is in flight");
      leases.inFlight.delete(oldest);
      leases.begin(30_000 + width + nowMs);
      changes += 1;
      leases.ends.firstMs();
    }
    for (const lease of leases.inFlight) {
      leases.ends.set(lease, 99_000);
      leases.ends.firstMs();
      changes += 1;
    }
    expect(leases.reads / changes).toBeLessThan(8);
  });
});
