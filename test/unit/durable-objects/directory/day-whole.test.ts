/** The whole of a day's budget, where a part of the list of runs does not answer. */
import { describe, expect, it } from "vitest";
import { DayWhole } from "../../../../durable-objects/directory/day-whole.ts";
import type { Lease } from "../../../../src/run/money/day-lease.ts";

const DAY = "2026-01-01";
const LIMIT = 100;

/** A whole whose budget is leased to part "a", which never answers. */
function wholeBesideOneThatHangs() {
  const leases = new Map<string, Lease>([["a", { no: 1, nanoUsd: LIMIT }]]);
  const waits: (() => void)[] = [];
  const released = Promise.withResolvers<Lease>();
  const whole = new DayWhole({
    rows: {
      leaseOf: (_, part) => leases.get(part) ?? { no: 0, nanoUsd: 0 },
      putLeaseOf: (_, part, lease) => void leases.set(part, lease),
      lessees: () => [...leases].flatMap(([part, { nanoUsd }]) => (nanoUsd > 0 ? [part] : [])),
      committed: () => [...leases.values()].reduce((sum, { nanoUsd }) => sum + nanoUsd, 0),
    },
    release: () => released.promise,
    timer: (_, elapsed) => {
      waits.push(elapsed);
      return () => void waits.splice(waits.indexOf(elapsed), 1);
    },
  });
  return { whole, leases, waits, released };
}

const request = (no: number) => ({
  no,
  leasedNanoUsd: 0,
  committedNanoUsd: 0,
  wantedNanoUsd: [10],
  limitNanoUsd: LIMIT,
});

describe("a day's budget of which a part that hangs has leased all", () => {
  it("is refused to another part once the part has been waited for, and no sooner", async () => {
    const { whole, waits } = wholeBesideOneThatHangs();
    let reply: unknown = null;
    const leased = whole.lease(DAY, "b", request(1)).then((answered) => (reply = answered));
    await expect.poll(() => waits.length).toBe(1);
    expect(reply).toBeNull();
    waits[0]?.();
    await leased;
    expect(reply).toMatchObject({ covers: [false], committedNanoUsd: LIMIT });
  });

  it("is leased to the next who asks if the part gives it back after all", async () => {
    const { whole, leases, waits, released } = wholeBesideOneThatHangs();
    const leased = whole.lease(DAY, "b", request(1));
    await expect.poll(() => waits.length).toBe(1);
    waits[0]?.();
    await leased;
    released.resolve({ no: 1, nanoUsd: 0 });
    await expect.poll(() => leases.get("a")?.nanoUsd).toBe(0);
    expect(waits).toEqual([]);
    expect(await whole.lease(DAY, "b", request(2))).toMatchObject({ covers: [true] });
  });

  it("is waited for by no timer any more once the part has given it back", async () => {
    const { whole, waits, released } = wholeBesideOneThatHangs();
    const leased = whole.lease(DAY, "b", request(1));
    await expect.poll(() => waits.length).toBe(1);
    released.resolve({ no: 1, nanoUsd: 0 });
    expect(await leased).toMatchObject({ covers: [true] });
    expect(waits).toEqual([]);
  });
});
