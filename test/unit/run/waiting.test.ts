import { describe, expect, it } from "vitest";
import { WaitingCalls, WaitingLanes, WaitingReaders } from "../../../durable-objects/run/waiting.ts";
import type { AcquireReply, ClaimReply } from "../../../durable-objects/run/rpc.ts";
import { ABANDONED_MS, LONG_POLL_MS } from "../../../src/limits.ts";

/** Lanes whose replies are written down as `lane: ask`. */
function makeLanes() {
  const lanes = new WaitingLanes();
  const told: string[] = [];
  const wait = (lane: number, want: number, { nowMs = 0, waits = true } = {}): void => {
    const reply = (claim: ClaimReply): void => void told.push(`${lane}: ${claim.ask ? "ask" : "rest"}`);
    lanes.wait(lane, { want, waits, reply }, nowMs);
  };
  return { lanes, told, wait };
}

describe("waiting lanes", () => {
  it("offer what they want, in the order in which they came", () => {
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

  it("are answered once, and wait no more", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 6);
    const claim = { jobs: [], epoch: 1, defaults: {}, ask: true, lingerMs: 0 };
    lanes.answer(0, claim);
    lanes.answer(0, claim);
    expect([told, lanes.size]).toEqual([["0: ask"], 0]);
  });

  it("wait once: a newer call answers the older one and takes its place at the end", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 6);
    wait(1, 6);
    wait(0, 3);
    expect(told).toEqual(["0: ask"]);
    expect([...lanes.offers()]).toEqual([
      [1, 6],
      [0, 3],
    ]);
  });

  it("that have no room do not wait", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 0);
    wait(1, -1);
    expect([told, lanes.size]).toEqual([["0: rest", "1: rest"], 0]);
  });

  it("all go when nothing is queued for them", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1);
    wait(1, 1, { waits: false });
    lanes.release(false);
    expect([told, lanes.size]).toEqual([["0: rest", "1: rest"], 0]);
  });

  it("stay while something is queued, but for those that did not come to wait", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1);
    wait(1, 1, { waits: false });
    lanes.release(true);
    expect([told, lanes.has(0), lanes.size]).toEqual([["1: ask"], true, 1]);
  });

  it("are told to ask again when they have waited long enough, exactly then", () => {
    const { lanes, told, wait } = makeLanes();
    wait(0, 1, { nowMs: 100 });
    wait(1, 1, { nowMs: 101 });
    lanes.sweep(99 + LONG_POLL_MS);
    expect(told).toEqual([]);
    lanes.sweep(100 + LONG_POLL_MS);
    expect([told, lanes.has(1)]).toEqual([["0: ask"], true]);
  });
});

/** Single calls whose replies are written down. */
function makeCalls() {
  const calls = new WaitingCalls();
  const told: string[] = [];
  const replyTo =
    (name: string) =>
    (reply: AcquireReply): void =>
      void told.push(`${name}: ${reply.ok}`);
  return { calls, told, replyTo };
}

describe("waiting single calls", () => {
  const refusal: AcquireReply = { ok: false, reason: { reason: "idempotency_conflict" }, remainingNanoUsd: null };

  it("are answered once, and wait no more", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.answer("a", refusal);
    calls.answer("a", refusal);
    expect([told, calls.size]).toEqual([["a: false"], 0]);
  });

  it("are told to wait on when they have waited long enough, and keep their place", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 100);
    expect(calls.sweep(99 + LONG_POLL_MS)).toEqual([]);
    expect(told).toEqual([]);
    expect(calls.sweep(100 + LONG_POLL_MS)).toEqual([]);
    expect([told, calls.size]).toEqual([["a: wait"], 1]);
    expect(calls.wait("a", replyTo("again"), 200 + LONG_POLL_MS)).toBe(true);
    calls.answer("a", refusal);
    expect(told).toEqual(["a: wait", "again: false"]);
  });

  it("have no place to take up that they never had", () => {
    const { calls, replyTo } = makeCalls();
    expect(calls.wait("a", replyTo("a"), 0)).toBe(false);
    expect(calls.size).toBe(0);
  });

  it("are abandoned if they do not ask again in time, and reported once", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(LONG_POLL_MS);
    expect(calls.sweep(LONG_POLL_MS + ABANDONED_MS - 1)).toEqual([]);
    expect(calls.sweep(LONG_POLL_MS + ABANDONED_MS)).toEqual(["a"]);
    expect([calls.sweep(LONG_POLL_MS + ABANDONED_MS), told, calls.size]).toEqual([[], ["a: wait"], 0]);
  });

  it("that asked again wait their full time anew", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(LONG_POLL_MS);
    calls.wait("a", replyTo("again"), LONG_POLL_MS + 5);
    expect(calls.sweep(LONG_POLL_MS + ABANDONED_MS)).toEqual([]);
    calls.sweep(2 * LONG_POLL_MS + 4);
    expect(told).toEqual(["a: wait"]);
    calls.sweep(2 * LONG_POLL_MS + 5);
    expect(told).toEqual(["a: wait", "again: wait"]);
  });

  it("may be answered between two of their questions: the answer waits for nobody", () => {
    const { calls, told, replyTo } = makeCalls();
    calls.add("a", replyTo("a"), 0);
    calls.sweep(LONG_POLL_MS);
    calls.answer("a", refusal);
    expect([told, calls.wait("a", replyTo("again"), 0)]).toEqual([["a: wait"], false]);
  });
});

describe("waiting readers", () => {
  it("are answered at once if they need not wait", () => {
    const readers = new WaitingReaders();
    let told = 0;
    readers.wait(
      () => true,
      () => (told += 1),
      100,
    );
    expect([told, readers.size]).toEqual([1, 0]);
  });

  it("are answered once, when what they wait for is there", () => {
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
