import { describe, expect, it } from "vitest";
import { leasesDueMs, type LeasedWork } from "../../../../../durable-objects/run/jobs/endings.ts";
import {
  EXECUTOR_LEASE_MS,
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  LOST_CALL_MS,
  NOTIFY_RETRY_MS,
} from "../../../../../src/limits.ts";

const NOW = 1_000_000;

function due(work: Partial<LeasedWork>): number | null {
  return leasesDueMs({ hasWork: true, hasGroups: false, leaseEndMs: null, mayLookLate: false, ...work }, NOW);
}

describe("when the alarm looks at leases", () => {
  it("is never while nothing is open or in flight", () => {
    expect(due({ hasWork: false, leaseEndMs: NOW + 5 })).toBe(null);
  });

  it("is one lease's term away if groups are open without any lease: their lanes may be lost", () => {
    expect(due({})).toBe(NOW + LEASE_TTL_MS);
  });

  it("is one lease's term away while groups are open, however long the leases of executors with a socket last", () => {
    const leaseEndMs = NOW + EXECUTOR_LEASE_MS;
    expect(due({ hasGroups: true, leaseEndMs })).toBe(NOW + LEASE_TTL_MS);
    expect(due({ hasGroups: true, leaseEndMs: NOW + 1 })).toBe(NOW + 1);
    expect(due({ hasGroups: false, leaseEndMs })).toBe(leaseEndMs);
    // What a restart waits for after the alarm must also pass within the minute.
    expect(LEASE_TTL_MS + FOUND_LEASE_TTL_MS + NOTIFY_RETRY_MS).toBeLessThanOrEqual(60_000);
  });

  it("is late for single calls whose loss nobody waits for", () => {
    expect(due({ mayLookLate: true, leaseEndMs: NOW + LEASE_TTL_MS })).toBe(NOW + LOST_CALL_MS);
  });
});
