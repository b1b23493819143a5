import { describe, expect, it } from "vitest";
import { CallWindow, groupIdOf } from "../../../src/engine/window.ts";

/** A window of 50 ms whose groups are named by when they were opened. */
function open(windowMs = 50): CallWindow {
  return new CallWindow(windowMs, (nowMs) => groupIdOf(nowMs, 0));
}

describe("a window of single calls", () => {
  it("makes no group of a lone call", () => {
    const { group, announced } = open().join(1_000);
    expect([group.id, group.members, announced]).toEqual([null, 1, false]);
  });

  it("announces a group with its second call, once, and names it after its opening for the first one too", () => {
    const window = open();
    const first = window.join(1_000);
    const second = window.join(1_010);
    const third = window.join(1_020);
    expect([first.announced, second.announced, third.announced]).toEqual([false, true, false]);
    expect(first.group.id).toBe("pg-0000000001000-000000");
    expect(second.group).toBe(first.group);
    expect(third.group).toBe(first.group);
    expect(first.group.members).toBe(3);
  });

  it("ends exactly its width after the first call", () => {
    const window = open(50);
    const first = window.join(1_000);
    expect(window.join(1_049).group).toBe(first.group);
    expect(window.join(1_050).group).not.toBe(first.group);
  });

  it("does not slide: later calls do not keep it open", () => {
    const window = open(50);
    const first = window.join(1_000);
    window.join(1_040);
    const late = window.join(1_060);
    expect(late.group).not.toBe(first.group);
    expect(late.group.openedAtMs).toBe(1_060);
  });

  it("of no width groups nothing", () => {
    const window = open(0);
    window.join(1_000);
    expect(window.join(1_000)).toMatchObject({ announced: false, group: { id: null, members: 1 } });
  });

  it("closes when it is flushed, and what it grouped stays grouped", () => {
    const window = open();
    const first = window.join(1_000);
    window.join(1_001);
    window.flush();
    const next = window.join(1_002);
    expect(next.group).not.toBe(first.group);
    expect([first.group.members, next.group.id]).toEqual([2, null]);
  });
});

describe("a group's id", () => {
  it.each([0, 0.5, 1 - Number.EPSILON])("has the time in 13 digits and six of base 36, for a draw of %d", (random) => {
    for (const nowMs of [0, 1_763_712_000_000, 9_999_999_999_999]) {
      expect(groupIdOf(nowMs, random)).toMatch(/^pg-\d{13}-[0-9a-z]{6}$/);
    }
  });

  it("uses the whole range of its suffix", () => {
    expect(groupIdOf(1_763_712_000_000, 0)).toBe("pg-1763712000000-000000");
    expect(groupIdOf(1_763_712_000_000, 1 - Number.EPSILON)).toBe("pg-1763712000000-zzzzzz");
  });
});
