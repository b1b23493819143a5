import { describe, expect, it } from "vitest";
import { WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { WaitingCalls, WaitingReaders } from "../../../../../durable-objects/run/memory/waiters.ts";
import type { AcquireReply } from "../../../../../src/objects/methods/calls.ts";
import type { ClaimReply } from "../../../../../src/objects/methods/groups.ts";
import { ABANDONED_MS, LONG_POLL_MS, RPC_WAIT_MS } from "../../../../../src/limits.ts";

const NO_SOCKET = (): boolean => false;

/** Lanes whose replies are written down as `lane: claim`. */
function makeLanes() {
  const lanes = new WaitingExecutors();
  const told: string[] = [];
  const wait = (lane: number, capacity: number, { nowMs = 0, waits = true } = {}): void => {
    const reply = (claim: ClaimReply): void => void told.push(`${lane}: ${claim.claimMore ? "claim" : "rest"}`);
    lanes.wait(lane, { capacity, waits, reply }, nowMs);
  };
  return { lanes, told, wait };
}

describe("waiting lanes", () => {
  it("offer their free capacity, in the order of arrival", () => {
    const { lanes, told, wait } = makeLanes();
    wait(3, 6);
    wait(0, 2);
    expect([...lanes.offers()]).toEqual([
      [3, 6],
      [0, 2],
    ]);
    expect([lanes.size, lanes.has(3), lanes.has(1), told.length]).toEqual([2, true, false, 0]);
  });

  it("hand out copies of their offers: counting one down changes nothing here", () => {
    const { lanes, wait } = makeLanes();
    wait(0, 6);
    lanes.offers().set(0, 1);
    expect(lanes.offers().get(0)).toBe(6);
  });

  it("are replied to once, and then no longer wait", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 6);
    const claim = { jobs: [], epoch: 1, defaults: {}, claimMore: true, batchingDelayMs: 0 };
    lanes.replyTo(0, claim);
    lanes.replyTo(0, claim);
    expect([told, lanes.size]).toEqual([["0: claim"], 0]);
  });

  it("wait once: a newer call makes the older one return and goes to the end", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 6);
    wait(1, 6);
    wait(0, 3);
    expect(told).toEqual(["0: claim"]);
    expect([...lanes.offers()]).toEqual([
      [1, 6],
      [0, 3],
    ]);
  });

  it("without room offer nothing, and learn at the end of the turn whether something is queued", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 0, { waits: false });
    wait(1, -1, { waits: false });
    expect([[...lanes.offers()], told]).toEqual([[], []]);
    lanes.releaseLanes(true, NO_SOCKET);
    expect([told, lanes.size]).toEqual([["0: claim", "1: claim"], 0]);
  });

  it("that get nothing any more have a reply at once, and so has their older call", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 6);
    lanes.refuse(0, ({ claimMore }) => told.push(`refused: ${claimMore}`));
    expect([told, lanes.size]).toEqual([["0: claim", "refused: false"], 0]);
  });

  it("all get a reply when nothing is queued for them", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1);
    wait(1, 1, { waits: false });
    lanes.releaseLanes(false, NO_SOCKET);
    expect([told, lanes.size]).toEqual([["0: rest", "1: rest"], 0]);
  });

  it("stay while something is queued, except those that claimed without waiting", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1);
    wait(1, 1, { waits: false });
    lanes.releaseLanes(true, NO_SOCKET);
    expect([told, lanes.has(0), lanes.size]).toEqual([["1: claim"], true, 1]);
  });

  it("that claimed without waiting wait at their sockets at once, if they have one, with the room that they have", () => {
    const { lanes, told, wait } = makeLanes();
    const rested: [number, number][] = [];
    const replies: ClaimReply[] = [];
    lanes.wait(0, { capacity: 2, waits: false, reply: (claim) => replies.push(claim) }, 0);
    wait(1, 3, { waits: false });
    wait(2, 4);
    lanes.releaseLanes(true, (lane, room) => {
      rested.push([lane, room]);
      return lane === 0;
    });
    expect(rested).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(replies).toMatchObject([{ jobs: [], claimMore: true, atSocket: true }]);
    expect([told, lanes.lanes()]).toEqual([["1: claim"], [2]]);
  });

  it("are made to claim once more when they have waited long enough, exactly then", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1, { nowMs: 100 });
    wait(1, 1, { nowMs: 101 });
    lanes.sweep(99 + LONG_POLL_MS, NO_SOCKET);
    expect(told).toEqual([]);
    lanes.sweep(100 + LONG_POLL_MS, NO_SOCKET);
    expect([told, lanes.has(1)]).toEqual([["0: claim"], true]);
  });

  it("wait at their sockets after a moment, if they have one", () => {
    const { lanes, told, wait } = makeLanes();
    const replies: ClaimReply[] = [];
    lanes.wait(0, { capacity: 1, waits: true, reply: (claim) => replies.push(claim) }, 0);
    wait(1, 1);
    lanes.sweep(RPC_WAIT_MS - 1, (lane) => lane === 0);
    expect(replies).toEqual([]);
    lanes.sweep(RPC_WAIT_MS, (lane) => lane === 0);
    expect(replies).toMatchObject([{ jobs: [], claimMore: true, atSocket: true }]);
    expect([told, lanes.lanes()]).toEqual([[], [1]]);
  });
});

/** Single calls whose replies are written down. */
function makeCalls() {
  const told: string[] = [];
  const calls = new WaitingCalls((callId, { ok }) => void told.push(`socket of ${callId}: ${ok}`));
  const replyTo =
    (name: string) =>
    (reply: AcquireReply): void =>
      void told.push(`${name}: ${reply.ok}`);
  return { calls, told, replyTo };
}

describe("waiting single calls", () => {
  const refusal: AcquireReply = { ok: false, reason: { reason: "idempotency_conflict" }, remainingNanoUsd: null };

  it("are replied to once, and then no longer wait", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.replyTo("a", refusal);
    calls.replyTo("a", refusal);
    expect([told, calls.size]).toEqual([["a: false"], 0]);
  });

  it("get the reply wait when they have waited long enough, and keep their position", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 100);
    expect(calls.sweep(99 + RPC_WAIT_MS)).toEqual([]);
    expect(told).toEqual([]);
    expect(calls.sweep(100 + RPC_WAIT_MS)).toEqual([]);
    expect([told, calls.size]).toEqual([["a: wait"], 1]);
    expect(calls.wait("a", replyTo("again"), 200 + RPC_WAIT_MS)).toBe(true);
    calls.replyTo("a", refusal);
    expect(told).toEqual(["a: wait", "again: false"]);
  });

  it("cannot continue a wait that never began", () => {
    const { calls, replyTo } = makeCalls();
    expect(calls.wait("a", replyTo("a"), 0)).toBe(false);
    expect(calls.size).toBe(0);
  });

  it("are abandoned if the request is not repeated in time, and returned once", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(RPC_WAIT_MS);
    expect(calls.sweep(RPC_WAIT_MS + ABANDONED_MS - 1)).toEqual([]);
    expect(calls.sweep(RPC_WAIT_MS + ABANDONED_MS)).toEqual(["a"]);
    expect([calls.sweep(RPC_WAIT_MS + ABANDONED_MS), told, calls.size]).toEqual([[], ["a: wait"], 0]);
  });

  it("wait their full time from each repeated request", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(RPC_WAIT_MS);
    calls.wait("a", replyTo("again"), RPC_WAIT_MS + 5);
    calls.sweep(2 * RPC_WAIT_MS + 4);
    expect(told).toEqual(["a: wait"]);
    calls.sweep(2 * RPC_WAIT_MS + 5);
    expect(told).toEqual(["a: wait", "again: wait"]);
  });

  it("may be decided between two requests: the reply is not kept", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(RPC_WAIT_MS);
    calls.replyTo("a", refusal);
    expect([told, calls.wait("a", replyTo("again"), 0)]).toEqual([["a: wait"], false]);
  });

  it("with a socket are never abandoned, need nothing as time passes, and get the decision there", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(RPC_WAIT_MS);
    expect([calls.awake, calls.socketOpened("a"), calls.awake]).toEqual([1, true, 0]);
    expect(calls.sweep(1_000_000)).toEqual([]);
    calls.replyTo("a", refusal);
    expect([told, calls.size, calls.awake]).toEqual([["a: wait", "socket of a: false"], 0, 0]);
  });

  it("with a socket get the decision of a repeated request as its reply, and are made to ask once more at the socket", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(RPC_WAIT_MS);
    calls.socketOpened("a");
    calls.wait("a", replyTo("again"), 200);
    expect(calls.awake).toBe(1);
    calls.replyTo("a", refusal);
    expect([told, calls.awake]).toEqual([["a: wait", "again: false", "socket of a: wait"], 0]);
  });

  it("whose socket closes are abandoned if their Worker does not come back in time", () => {
    const { calls, replyTo } = makeCalls();
    for (const name of ["a", "b"]) {
      calls.add(name, replyTo(name), 0);
      calls.sweep(RPC_WAIT_MS);
      calls.socketOpened(name);
      calls.socketClosed(name, 50_000);
    }
    calls.socketOpened("b");
    expect(calls.sweep(50_000 + ABANDONED_MS - 1)).toEqual([]);
    expect(calls.sweep(50_000 + ABANDONED_MS)).toEqual(["a"]);
    expect([calls.size, calls.awake]).toEqual([1, 0]);
  });

  it("are away between two requests, and while their socket is lost", () => {
    const { calls, replyTo } = makeCalls();
    const seen: boolean[] = [calls.isAway("a")];
    const look = (): void => void seen.push(calls.isAway("a"));
    calls.add("a", replyTo("a"), 0);
    look();
    calls.sweep(RPC_WAIT_MS);
    look();
    calls.wait("a", replyTo("again"), 200);
    look();
    calls.sweep(200 + RPC_WAIT_MS);
    calls.socketOpened("a");
    look();
    calls.socketClosed("a", 500);
    look();
    expect(seen).toEqual([false, false, true, false, false, true]);
  });

  it("whose permit reached nobody wait for their Worker, and are abandoned if it does not come back in time", () => {
    const { calls, replyTo } = makeCalls();
    for (const name of ["a", "b"]) calls.addAway(name, 1_000);
    expect([calls.size, calls.awake, calls.isAway("a")]).toEqual([2, 2, true]);
    expect(calls.wait("b", replyTo("b"), 1_000 + ABANDONED_MS)).toBe(true);
    expect(calls.sweep(1_000 + ABANDONED_MS - 1)).toEqual([]);
    expect(calls.sweep(1_000 + ABANDONED_MS)).toEqual(["a"]);
  });

  it("that are unknown have no use for a socket", () => {
    const { calls } = makeCalls();
    calls.socketClosed("a", 0);
    expect([calls.socketOpened("a"), calls.size, calls.awake]).toEqual([false, 0, 0]);
  });
});

describe("waiting readers", () => {
  it("return at once if they need not wait", () => {
    const readers = new WaitingReaders();
    let told = 0;
    readers.wait(
      () => true,
      () => (told += 1),
      100,
    );
    expect([told, readers.size]).toEqual([1, 0]);
  });

  it("return once, when what they wait for is there", () => {
    const readers = new WaitingReaders();
    let told = 0;
    let ready = false;
    readers.wait(
      () => ready,
      () => (told += 1),
      100,
    );
    readers.sweep(10);
    expect([told, readers.size]).toEqual([0, 1]);
    ready = true;
    readers.sweep(10);
    readers.sweep(10);
    expect([told, readers.size]).toEqual([1, 0]);
  });

  it("wait until their time is over, exactly", () => {
    const readers = new WaitingReaders();
    const told: string[] = [];
    readers.wait(
      () => false,
      () => told.push("a"),
      100,
    );
    readers.wait(
      () => false,
      () => told.push("b"),
      101,
    );
    readers.sweep(99);
    expect(told).toEqual([]);
    readers.sweep(100);
    expect([told, readers.size]).toEqual([["a"], 1]);
  });
});
