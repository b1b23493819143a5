import { describe, expect, it } from "vitest";
import {
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  RPC_WAIT_MS,
  TOOL_CALLS_OVER_KEPT,
  TOOL_CALLS_WAITING_MAX,
  TOOL_QUEUE_MS_MAX,
  TOOL_TIMEOUT_MS_MAX,
} from "../../../../../src/limits.ts";
import { ToolPermits } from "../../../../../durable-objects/run/memory/tool-permits.ts";

const MARKS = { granted: "+", refused: "-", waits: "?" } as const;

/** Permits, and in `decisions` the replies in order: `a+` granted, `a-` refused, `a?` goes on waiting. */
function permits() {
  const toolPermits = new ToolPermits();
  const decisions: string[] = [];
  const request = (callId: string, nowMs = 0, as = callId, waitedMs = 0): void =>
    toolPermits.request(
      { callId, tool: "t", waitedMs },
      (decision) => void decisions.push(`${as}${MARKS[decision]}`),
      nowMs,
    );
  return { toolPermits, decisions, request };
}

describe("permits of tool calls", () => {
  it("are granted in the order of arrival, up to the run's width", () => {
    const { toolPermits, decisions, request } = permits();
    for (const callId of ["a", "b", "c", "d"]) request(callId);
    toolPermits.grant(2, 0);
    expect(decisions).toEqual(["a+", "b+"]);
    expect([toolPermits.inFlight, toolPermits.waiting]).toEqual([2, 2]);
    toolPermits.end("a");
    toolPermits.grant(2, 1);
    expect(decisions).toEqual(["a+", "b+", "c+"]);
  });

  it("are not granted while the width is 0", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    toolPermits.grant(0, 0);
    expect(decisions).toEqual([]);
    toolPermits.grant(1, 1);
    expect(decisions).toEqual(["a+"]);
  });

  it("are refused to a call that has waited long enough, and not before", () => {
    const { toolPermits, decisions, request } = permits();
    request("a", 100);
    toolPermits.grant(0, 100 + TOOL_QUEUE_MS_MAX - 1);
    expect([decisions, toolPermits.isDue(100 + TOOL_QUEUE_MS_MAX - 1)]).toEqual([[], false]);
    expect(toolPermits.isDue(100 + TOOL_QUEUE_MS_MAX)).toBe(true);
    toolPermits.grant(0, 100 + TOOL_QUEUE_MS_MAX);
    expect([decisions, toolPermits.waiting]).toEqual([["a-"], 0]);
  });

  it("are refused at once if too many calls wait already", () => {
    const { decisions, request } = permits();
    for (let at = 0; at < TOOL_CALLS_WAITING_MAX; at += 1) request(`w${at}`);
    expect(decisions).toEqual([]);
    request("late");
    expect(decisions).toEqual(["late-"]);
  });

  it("may be requested twice without losing the position", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    request("b");
    request("a", 1, "a repeated");
    toolPermits.grant(1, 1);
    expect(decisions).toEqual(["a?", "a repeated+"]);
  });

  it("are waited for without a pending request after a moment, and the Worker is to repeat it once they are decided", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    request("b", RPC_WAIT_MS);
    toolPermits.release(RPC_WAIT_MS - 1);
    expect([decisions, toolPermits.pending]).toEqual([[], 2]);
    toolPermits.release(RPC_WAIT_MS);
    expect([decisions, toolPermits.pending, toolPermits.waiting]).toEqual([["a?"], 1, 2]);
    expect(toolPermits.grant(1, RPC_WAIT_MS)).toEqual([{ callId: "a", tool: "t" }]);
    request("a", RPC_WAIT_MS + 1);
    expect([decisions, toolPermits.isWaiting("a"), toolPermits.inFlight]).toEqual([["a?", "a+"], false, 1]);
  });

  it("are waited for with a pending request by a Worker that does not say for how long it has waited", () => {
    const { toolPermits, decisions } = permits();
    toolPermits.request({ callId: "a", tool: "t" }, (decision) => void decisions.push(decision), 0);
    toolPermits.release(TOOL_QUEUE_MS_MAX - 1);
    toolPermits.grant(0, TOOL_QUEUE_MS_MAX - 1);
    expect(decisions).toEqual([]);
    toolPermits.grant(0, TOOL_QUEUE_MS_MAX);
    expect(decisions).toEqual(["refused"]);
  });

  it("count the time that a call has waited in an instance that is gone", () => {
    const { toolPermits, decisions, request } = permits();
    request("a", 100, "a", TOOL_QUEUE_MS_MAX - 10);
    toolPermits.grant(0, 109);
    expect(decisions).toEqual([]);
    toolPermits.grant(0, 110);
    expect(decisions).toEqual(["a-"]);
  });

  it("are refused when the run ends to calls without a pending request, too: their Workers repeat it", () => {
    const { toolPermits, request } = permits();
    request("a");
    toolPermits.release(RPC_WAIT_MS);
    expect(toolPermits.refuseWaiting()).toEqual([{ callId: "a", tool: "t" }]);
    expect(toolPermits.waiting).toBe(0);
  });

  it("are granted once more to a call whose reply was lost, and counted once", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    toolPermits.grant(1, 0);
    request("a", 5);
    expect([decisions, toolPermits.inFlight]).toEqual([["a+", "a+"], 1]);
  });

  it("are refused to all waiting calls when the run ends, and kept by calls in flight", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    request("b");
    toolPermits.grant(1, 0);
    toolPermits.refuseWaiting();
    expect([decisions, toolPermits.inFlight, toolPermits.waiting]).toEqual([["a+", "b-"], 1, 0]);
  });
});

describe("a permit", () => {
  function inFlight() {
    const all = permits();
    all.request("a");
    all.toolPermits.grant(1, 0);
    return all;
  }

  it("expires without a heartbeat for the term of a lease", () => {
    const { toolPermits } = inFlight();
    expect([toolPermits.expire(LEASE_TTL_MS - 1), toolPermits.isDue(LEASE_TTL_MS - 1)]).toEqual([[], false]);
    expect([toolPermits.nextEndMs(), toolPermits.isDue(LEASE_TTL_MS)]).toEqual([LEASE_TTL_MS, true]);
    expect(toolPermits.expire(LEASE_TTL_MS)).toEqual([{ callId: "a", tool: "t", latencyMs: LEASE_TTL_MS }]);
    expect([toolPermits.inFlight, toolPermits.nextEndMs()]).toEqual([0, null]);
  });

  it("is renewed by every heartbeat", () => {
    const { toolPermits } = inFlight();
    expect(toolPermits.renew({ callId: "a", tool: "t" }, 20_000)).toBe(true);
    expect(toolPermits.expire(LEASE_TTL_MS)).toEqual([]);
    const latencyMs = 20_000 + LEASE_TTL_MS;
    expect(toolPermits.expire(latencyMs)).toEqual([{ callId: "a", tool: "t", latencyMs }]);
  });

  it("is held as long as a call can last by a Worker with a socket, without heartbeats", () => {
    const { toolPermits } = inFlight();
    toolPermits.hold("a");
    expect(toolPermits.nextEndMs()).toBe(TOOL_TIMEOUT_MS_MAX + LEASE_TTL_MS);
    // A heartbeat that was under way does not shorten it.
    toolPermits.renew({ callId: "a", tool: "t" }, 1_000);
    expect(toolPermits.nextEndMs()).toBe(TOOL_TIMEOUT_MS_MAX + LEASE_TTL_MS);
  });

  it("whose Worker loses its socket expires after the time of a reconnect, unless it is held again", () => {
    const { toolPermits } = inFlight();
    toolPermits.hold("a");
    toolPermits.doubt("a", 5_000);
    expect(toolPermits.nextEndMs()).toBe(5_000 + FOUND_LEASE_TTL_MS);
    toolPermits.hold("a");
    expect(toolPermits.expire(5_000 + FOUND_LEASE_TTL_MS)).toEqual([]);
    toolPermits.doubt("a", 60_000);
    expect(toolPermits.expire(60_000 + FOUND_LEASE_TTL_MS)).toHaveLength(1);
    // Whose permit is gone holds none.
    toolPermits.hold("a");
    toolPermits.doubt("a", 60_000);
    expect(toolPermits.inFlight).toBe(0);
  });

  it("that was revoked stops its Worker at the next heartbeat, and is returned once", () => {
    const { toolPermits, decisions, request } = inFlight();
    expect(toolPermits.abort(7)).toEqual([{ callId: "a", tool: "t", latencyMs: 7 }]);
    expect(toolPermits.renew({ callId: "a", tool: "t" }, 8)).toBe(false);
    expect(toolPermits.end("a")).toBe(false);
    expect([toolPermits.inFlight, toolPermits.abort(9)]).toEqual([0, []]);
    request("a", 10, "a repeated");
    expect(decisions.at(-1)).toBe("a repeated-");
  });

  it("that a restart lost is restored by the next heartbeat", () => {
    const { toolPermits } = permits();
    expect(toolPermits.renew({ callId: "a", tool: "t" }, 50)).toBe(true);
    expect(toolPermits.inFlight).toBe(1);
    expect(toolPermits.end("a")).toBe(true);
    expect(toolPermits.inFlight).toBe(0);
  });

  it("that is returned twice counts once", () => {
    const { toolPermits, request } = inFlight();
    request("b");
    toolPermits.end("a");
    toolPermits.end("a");
    toolPermits.grant(1, 1);
    expect(toolPermits.inFlight).toBe(1);
  });

  it("may be returned by a call that still waits: it gets none, and a reply", () => {
    const { toolPermits, decisions, request } = permits();
    request("a");
    toolPermits.end("a");
    expect(decisions).toEqual(["a-"]);
    toolPermits.grant(1, 0);
    expect([decisions, toolPermits.inFlight, toolPermits.waiting]).toEqual([["a-"], 0, 0]);
  });
});

it("forgets the oldest of many revoked calls", () => {
  const { toolPermits } = permits();
  for (let at = 0; at <= TOOL_CALLS_OVER_KEPT; at += 1) toolPermits.renew({ callId: `c${at}`, tool: "t" }, 0);
  toolPermits.abort(1);
  expect(toolPermits.renew({ callId: "c1", tool: "t" }, 2)).toBe(false);
  expect(toolPermits.renew({ callId: "c0", tool: "t" }, 2)).toBe(true);
});
