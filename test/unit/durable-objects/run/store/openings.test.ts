import { describe, expect, it } from "vitest";
import { Openings } from "../../../../../durable-objects/run/store/openings.ts";
import { OPENINGS_KEPT, STAGED_KEPT_MS } from "../../../../../src/limits.ts";

const opened = (each: number) => ({ openKey: `opened ${each}`, seq: each, stagedAtMs: null });
const staged = (each: number, atMs: number) => ({ openKey: `staged ${each}`, seq: each, stagedAtMs: atMs });

describe("openings", () => {
  it("find the group of a request, and none for an unknown request", () => {
    const openings = new Openings();
    openings.add(opened(7));
    expect([openings.find("opened 7"), openings.find("opened 8")]).toEqual([7, null]);
    openings.forget("opened 7");
    expect(openings.find("opened 7")).toBeNull();
  });

  it("are limited to the newest", () => {
    const openings = new Openings();
    for (let each = 1; each <= OPENINGS_KEPT; each++) openings.add(opened(each));
    expect(openings.find("opened 1")).toBe(1);
    openings.add(opened(OPENINGS_KEPT + 1));
    expect([openings.find("opened 1"), openings.find("opened 2")]).toEqual([null, 2]);
  });

  it("keep a group whose upload is not complete, however many others are opened", () => {
    const openings = new Openings();
    openings.add(staged(1, 0));
    for (let each = 2; each <= 2 * OPENINGS_KEPT; each++) openings.add(opened(each));
    expect(openings.find("staged 1")).toBe(1);
    expect(openings.find(`opened ${OPENINGS_KEPT}`)).toBeNull();
  });

  it("count a staged group as the newest once it is opened", () => {
    const openings = new Openings();
    openings.add(staged(1, 0));
    for (let each = 2; each <= OPENINGS_KEPT; each++) openings.add(opened(each));
    openings.add({ openKey: "staged 1", seq: 1, stagedAtMs: null });
    openings.add(opened(OPENINGS_KEPT + 1));
    expect([openings.find("staged 1"), openings.find("opened 2")]).toEqual([1, null]);
    expect(openings.takeAbandoned(STAGED_KEPT_MS)).toEqual([]);
  });
});

describe("a staged group whose last page does not arrive", () => {
  it("is returned as abandoned once, exactly when its time is over, and not found afterwards", () => {
    const openings = new Openings();
    openings.add(staged(3, 100));
    openings.add(opened(4));
    expect([openings.nextDueMs, openings.takeAbandoned(99 + STAGED_KEPT_MS)]).toEqual([100 + STAGED_KEPT_MS, []]);
    expect(openings.takeAbandoned(100 + STAGED_KEPT_MS)).toEqual([3]);
    expect([openings.takeAbandoned(Infinity), openings.find("staged 3"), openings.find("opened 4")]).toEqual([
      [],
      null,
      4,
    ]);
    expect(openings.nextDueMs).toBeNull();
  });

  it("has its time counted from its newest page", () => {
    const openings = new Openings();
    openings.add(staged(3, 100));
    openings.add(staged(5, 400));
    openings.add(staged(3, 500));
    expect(openings.nextDueMs).toBe(400 + STAGED_KEPT_MS);
    expect(openings.takeAbandoned(499 + STAGED_KEPT_MS)).toEqual([5]);
  });
});
