import { describe, expect, it } from "vitest";
import { windowIdOf } from "../../../../src/run/queue/group-id.ts";
import { CoalescingWindow, type WindowGroup } from "../../../../src/run/leases/concurrency-window.ts";
import {
  STOOD_STILL_MS_MAX,
  WINDOW_GROUPS_KEPT,
  WINDOW_GROUPS_STORED,
  WINDOW_SLIDES_MAX,
} from "../../../../src/limits.ts";

/** A window of 50 ms whose groups are named by the time of their opening. */
function open(windowMs = 50): CoalescingWindow {
  return new CoalescingWindow(windowMs, (nowMs) => windowIdOf(nowMs, 0));
}

/** A group of two calls that arrived at `atMs`. */
function pair(window: CoalescingWindow, atMs: number): WindowGroup {
  window.flush();
  window.join(atMs);
  return window.join(atMs).group;
}

function endBoth(group: WindowGroup, atMs: number): void {
  group.callEnded(true, atMs);
  group.callEnded(false, atMs);
}

describe("the coalescing window", () => {
  it("forms no group of a lone call", () => {
    const { group, position } = open().join(1_000);
    expect([group.id, group.members, position]).toEqual([null, 1, "alone"]);
  });

  it("forms a group with its second call, once, named after its opening for both calls", () => {
    const window = open();
    const first = window.join(1_000);
    const second = window.join(1_010);
    const third = window.join(1_020);
    expect([first.position, second.position, third.position]).toEqual(["alone", "second", "later"]);
    expect(first.group.id).toMatch(/^pg-0000000001000-[0-9a-z]{6}$/);
    expect(second.group).toBe(first.group);
    expect(third.group).toBe(first.group);
    expect(first.group.members).toBe(3);
    expect(window.current).toBe(first.group);
  });

  it("closes exactly its length after the last call", () => {
    const window = open(50);
    const first = window.join(1_000);
    expect(window.join(1_049).group).toBe(first.group);
    expect(window.join(1_098).group).toBe(first.group);
    expect(window.join(1_148).group).not.toBe(first.group);
  });

  it("closes at the latest WINDOW_SLIDES_MAX times its length after the first call", () => {
    const window = open(50);
    const { group } = window.join(1_000);
    const lastMs = 1_000 + WINDOW_SLIDES_MAX * 50;
    for (let atMs = 1_040; atMs < lastMs; atMs += 40) expect(window.join(atMs).group).toBe(group);
    expect(window.join(lastMs - 1).group).toBe(group);
    expect(window.join(lastMs).group).not.toBe(group);
  });

  it("takes a call that arrived in time and has waited on its way, for permits, credit or money", () => {
    const window = open(50);
    const { group } = window.join(1_000);
    window.join(1_010);
    expect(window.join(1_300, 1_059).group).toBe(group);
    expect(window.join(1_300, 1_060).group).toBe(group);
    expect(group.closesAtMs).toBe(1_000 + WINDOW_SLIDES_MAX * 50);
  });

  it("takes no such call once its group is announced: the count was final", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    expect(window.takeClosed(1_049)).toEqual([]);
    expect([window.takeClosed(1_050), window.takeClosed(1_051)]).toEqual([[group], []]);
    expect(window.join(1_060, 1_010).group).not.toBe(group);
    expect(group.members).toBe(2);
  });

  it("waits for its length after a call that has been on its way: those that came with it may be later", () => {
    const window = open(50);
    const { group } = window.join(1_000);
    window.join(1_010, 1_005);
    window.join(1_400, 1_040);
    expect([group.closesAtMs, window.nextEndMs]).toEqual([1_000 + WINDOW_SLIDES_MAX * 50, 1_450]);
    expect(window.takeClosed(1_449)).toEqual([]);
    expect(window.join(1_449, 1_200).group).not.toBe(group);
  });

  it("waits for its length once its object has stood still, but for calls only that arrived in time", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    window.stoodStill(1_600);
    expect([window.nextEndMs, window.takeClosed(1_649)]).toEqual([1_650, []]);
    expect(window.join(1_610, 1_049).group).toBe(group);
    expect(window.takeClosed(1_659)).toEqual([]);
    expect([window.takeClosed(1_660), group.members]).toEqual([[group], 3]);
    const other = open(50);
    const two = pair(other, 1_000);
    other.stoodStill(1_600);
    expect(other.join(1_610, 1_050).group).not.toBe(two);
    expect(other.takeClosed(1_611)).toEqual([two]);
  });

  it("waits for no longer than STOOD_STILL_MS_MAX after its first call, and not for calls of a group that is announced", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    const lastMs = 1_000 + STOOD_STILL_MS_MAX;
    window.stoodStill(lastMs - 10);
    window.join(lastMs - 5, 1_010);
    expect(window.takeClosed(lastMs - 1)).toEqual([]);
    expect(window.takeClosed(lastMs)).toEqual([group]);
    window.stoodStill(lastMs + 1);
    expect([window.nextEndMs, window.join(lastMs + 2, 1_010).position]).toEqual([null, "alone"]);
  });

  it("of zero length groups nothing", () => {
    const window = open(0);
    window.join(1_000);
    expect(window.join(1_000)).toMatchObject({ position: "alone", group: { id: null, members: 1 } });
  });

  it("closes when it is flushed, and its group stays", () => {
    const window = open();
    const first = window.join(1_000);
    window.join(1_001);
    window.flush();
    expect(window.current).toBeNull();
    const next = window.join(1_002);
    expect(next.group).not.toBe(first.group);
    expect([first.group.members, next.group.id]).toEqual([2, null]);
  });
});

describe("a group of single calls", () => {
  it("counts attempts in flight and their peak, and adds up their latency and cost", () => {
    const group = pair(open(), 1_000);
    group.attemptStarted();
    group.attemptStarted();
    group.attemptEnded(30, 5);
    group.attemptStarted();
    group.attemptEnded(12, 7);
    expect(group).toMatchObject({ inFlight: 1, peakParallel: 2, sequentialMs: 42, costNanoUsd: 12 });
  });

  it("is done once each of its calls has ended, completed or failed", () => {
    const group = pair(open(), 1_000);
    group.callEnded(true, 1_500);
    expect(group.done).toBe(false);
    group.callEnded(false, 1_700);
    expect(group).toMatchObject({ done: true, completed: 1, failed: 1, endedAtMs: 1_700 });
  });

  it("ends once: when no call can join it any more and all its calls have ended", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    expect([window.nextEndMs, window.takeClosed(1_050), window.nextEndMs]).toEqual([1_050, [group], null]);
    endBoth(group, 1_020);
    expect([window.nextEndMs, window.takeEnded(1_049)]).toEqual([1_050, []]);
    expect([window.takeEnded(1_050), window.takeEnded(1_051), window.nextEndMs]).toEqual([[group], [], null]);
  });

  it("ends with its last call if that ends after the window", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    group.callEnded(true, 1_020);
    expect(window.takeEnded(9_000)).toEqual([]);
    group.callEnded(true, 9_001);
    expect(window.takeEnded(9_001)).toEqual([group]);
  });

  it("does not end while the window is open to one more call, which counts", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    endBoth(group, 1_010);
    expect(window.join(1_049)).toMatchObject({ position: "later" });
    expect([window.takeEnded(1_098), window.nextEndMs]).toEqual([[], 1_099]);
    expect([window.takeClosed(1_099), window.nextEndMs]).toEqual([[group], null]);
    group.callEnded(true, 1_100);
    expect(window.takeEnded(1_100)).toEqual([group]);
  });

  it("ends at once when its window is flushed", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    endBoth(group, 1_010);
    window.flush();
    expect(window.takeEnded(1_010)).toEqual([group]);
  });

  it("of one call never ends: it was never announced", () => {
    const window = open(50);
    window.join(1_000).group.callEnded(true, 1_001);
    expect([window.nextEndMs, window.takeEnded(2_000)]).toEqual([null, []]);
  });

  it("is found by its id until its end", () => {
    const window = open(50);
    const group = pair(window, 1_000);
    const id = group.id ?? "";
    expect(window.byId(id)).toBe(group);
    endBoth(group, 1_010);
    window.takeEnded(2_000);
    expect([window.byId(id), window.byId("pg-0000000001000-zzzzzz")]).toEqual([null, null]);
  });

  it("is remembered while it is among the newest WINDOW_GROUPS_KEPT that have not ended", () => {
    const window = open(50);
    const groups = Array.from({ length: WINDOW_GROUPS_KEPT }, (_, each) => pair(window, each * 100));
    const isKept = ({ id }: WindowGroup): boolean => window.byId(id ?? "") !== null;
    expect(groups.every(isKept)).toBe(true);
    const newest = pair(window, WINDOW_GROUPS_KEPT * 100);
    expect([groups.map(isKept).indexOf(true), isKept(newest)]).toEqual([1, true]);
    for (const group of groups) endBoth(group, 90_000);
    expect(window.takeEnded(90_000)).toHaveLength(WINDOW_GROUPS_KEPT - 1);
  });
});

describe("a call between two attempts", () => {
  it("stays in its group, even if that was announced only after its first attempt", () => {
    const window = new CoalescingWindow(50, (nowMs) => `pg-${nowMs}`);
    const { group } = window.join(0);
    window.keepPosition("a", group);
    window.join(10);
    expect(window.rejoin("a", null)).toBe(group);
    expect(group.id).toBe("pg-0");
    expect(window.rejoin("a", null)).toBeNull();
    expect(window.rejoin("a", "pg-0")).toBe(group);
  });

  it("is forgotten when too many others are between two attempts", () => {
    const window = new CoalescingWindow(50, (nowMs) => `pg-${nowMs}`);
    const { group } = window.join(0);
    for (let call = 0; call <= WINDOW_GROUPS_KEPT; call++) window.keepPosition(`c${call}`, group);
    expect(window.rejoin("c0", null)).toBeNull();
    expect(window.rejoin("c1", null)).toBe(group);
  });
});

describe("the groups that a restart finds", () => {
  /** The window of the next instance. */
  const restarted = (window: CoalescingWindow): CoalescingWindow => {
    const next = open();
    next.restore(structuredClone(window.stored), window.wasFormed);
    return next;
  };

  it("end at once, with what their calls have cost, if no call is in flight", () => {
    const window = open();
    const group = pair(window, 1_000);
    group.attemptStarted();
    group.attemptEnded(30, 7);
    endBoth(group, 1_040);
    // Before the window is over, and again after a second restart.
    const [ended] = restarted(restarted(window)).takeEnded(1_041);
    expect(ended).toMatchObject({
      id: group.id,
      members: 2,
      completed: 1,
      failed: 1,
      sequentialMs: 30,
      costNanoUsd: 7,
    });
  });

  it("go on with the calls that are in flight, and with those that come back for another attempt", () => {
    const window = open();
    const id = pair(window, 1_000).id ?? "";
    window.join(1_010).group.callEnded(true, 1_020);
    const next = restarted(window);
    const group = next.readmit(id);
    expect(next.takeEnded(2_000)).toEqual([]);
    expect(next.rejoin("c", id)).toBe(group);
    group?.callEnded(true, 2_000);
    expect(next.takeEnded(2_000)).toEqual([]);
    group?.callEnded(false, 2_001);
    expect(next.takeEnded(2_001)).toMatchObject([{ id, members: 3, completed: 2, failed: 1 }]);
    expect([next.stored, next.wasFormed, restarted(next).wasFormed]).toEqual([[], true, true]);
  });

  it("wait for the rest of the window that an instance reports, as long as that has credit", () => {
    const window = open();
    const label = { windowNumber: 3, openedAgoMs: 10, id: "pg-reported", position: "second", closesInMs: 0 } as const;
    window.joinReported("credit one", label, 1_000).group.callEnded(true, 1_000);
    const [next, alone] = [restarted(window), restarted(window)];
    next.keepReported((instance) => instance === "credit one");
    expect(next.takeEnded(2_000)).toEqual([]);
    next.joinReported("credit one", { ...label, position: "later" }, 2_000).group.callEnded(true, 2_000);
    next.reportedUntil("credit one", 2_000);
    expect(next.takeEnded(2_000)).toMatchObject([{ id: "pg-reported", members: 2, completed: 2 }]);
    alone.keepReported(() => false);
    expect(alone.takeEnded(2_000)).toMatchObject([{ members: 1 }]);
  });

  it("are announced by the next instance if the log has not their beginning, and by it only then", () => {
    const window = open();
    const announced = pair(window, 1_000);
    window.takeClosed(1_050);
    const silent = pair(window, 2_000);
    const next = restarted(window);
    next.readmit(silent.id ?? "");
    expect(next.takeClosed(2_001)).toMatchObject([{ id: silent.id, members: 1 }]);
    expect(restarted(next).takeClosed(2_002)).toEqual([]);
    expect(next.byId(announced.id ?? "")).not.toBeNull();
  });

  it("are the newest, and a call of another one has none", () => {
    const window = open();
    const groups = Array.from({ length: WINDOW_GROUPS_STORED }, (_, each) => pair(window, each * 100));
    expect(window.stored.map(({ id }) => id)).toEqual(groups.map(({ id }) => id));
    pair(window, WINDOW_GROUPS_STORED * 100);
    expect([window.stored.length, window.stored.at(0)?.id]).toEqual([WINDOW_GROUPS_STORED, groups[1]?.id]);
    expect(restarted(window).readmit(groups[0]?.id ?? "")).toBeNull();
  });
});
