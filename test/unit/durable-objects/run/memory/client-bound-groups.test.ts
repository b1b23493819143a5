import { describe, expect, it } from "vitest";
import { ClientBoundGroups } from "../../../../../durable-objects/run/memory/client-bound-groups.ts";
import { LEASE_TTL_MS } from "../../../../../src/limits.ts";

const byNone = (): boolean => false;

describe("a group that is bound to its client", () => {
  it("lapses exactly when no client has followed it for the term of a lease", () => {
    const groups = new ClientBoundGroups();
    groups.followed(1, 100);
    groups.followed(2, 101);
    expect(groups.lapsed(byNone, 99 + LEASE_TTL_MS)).toEqual([]);
    expect(groups.lapsed(byNone, 100 + LEASE_TTL_MS)).toEqual([1]);
    expect(groups.lapsed(byNone, 101 + LEASE_TTL_MS)).toEqual([1, 2]);
  });

  it("gets a new term each time it is followed", () => {
    const groups = new ClientBoundGroups();
    groups.followed(1, 0);
    groups.followed(1, 20_000);
    expect(groups.lapsed(byNone, LEASE_TTL_MS)).toEqual([]);
    expect(groups.lapsed(byNone, 20_000 + LEASE_TTL_MS)).toEqual([1]);
  });

  it("does not lapse while a client follows it at a socket, which sets no time for it either", () => {
    const groups = new ClientBoundGroups();
    groups.followed(1, 0);
    groups.followed(2, 50);
    const byOne = (seq: number): boolean => seq === 1;
    expect(groups.lapsed(byOne, Number.MAX_SAFE_INTEGER)).toEqual([2]);
    expect([groups.nextLapseMs(byOne), groups.nextLapseMs(byNone)]).toEqual([50 + LEASE_TTL_MS, LEASE_TTL_MS]);
    expect([groups.nextLapseMs(() => true), new ClientBoundGroups().nextLapseMs(byNone)]).toEqual([null, null]);
  });

  it("does not lapse once it has ended", () => {
    const groups = new ClientBoundGroups();
    groups.followed(1, 0);
    groups.forget(1);
    expect(groups.lapsed(byNone, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });
});
