import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS, TOOL_CALLS_OVER_KEPT, TOOL_CALLS_WAITING_MAX, TOOL_QUEUE_MS_MAX } from "../../../src/limits.ts";
import { ToolPermits } from "../../../src/tools/permits.ts";

/** Permits, and in `told` what was decided, in order: `a+` granted, `a-` turned away. */
function permits() {
  const held = new ToolPermits();
  const told: string[] = [];
  const ask = (callId: string, nowMs = 0, as = callId): void =>
    held.ask({ callId, tool: "t" }, (granted) => void told.push(`${as}${granted ? "+" : "-"}`), nowMs);
  return { held, told, ask };
}

describe("permits of tool calls", () => {
  it("are given in the order of asking, as many as the run is wide", () => {
    const { held, told, ask } = permits();
    for (const callId of ["a", "b", "c", "d"]) ask(callId);
    held.grant(2, 0);
    expect(told).toEqual(["a+", "b+"]);
    expect([held.inFlight, held.waiting]).toEqual([2, 2]);
    held.end("a");
    held.grant(2, 1);
    expect(told).toEqual(["a+", "b+", "c+"]);
  });

  it("are not given while the width is 0", () => {
    const { held, told, ask } = permits();
    ask("a");
    held.grant(0, 0);
    expect(told).toEqual([]);
    held.grant(1, 1);
    expect(told).toEqual(["a+"]);
  });

  it("are refused to who has waited long enough, and to nobody before", () => {
    const { held, told, ask } = permits();
    ask("a", 100);
    held.grant(0, 100 + TOOL_QUEUE_MS_MAX - 1);
    expect([told, held.isDue(100 + TOOL_QUEUE_MS_MAX - 1)]).toEqual([[], false]);
    expect(held.isDue(100 + TOOL_QUEUE_MS_MAX)).toBe(true);
    held.grant(0, 100 + TOOL_QUEUE_MS_MAX);
    expect([told, held.waiting]).toEqual([["a-"], 0]);
  });

  it("are refused at once where too many wait already", () => {
    const { told, ask } = permits();
    for (let at = 0; at < TOOL_CALLS_WAITING_MAX; at += 1) ask(`w${at}`);
    expect(told).toEqual([]);
    ask("late");
    expect(told).toEqual(["late-"]);
  });

  it("are asked for again without losing the place", () => {
    const { held, told, ask } = permits();
    ask("a");
    ask("b");
    ask("a", 1, "a again");
    held.grant(1, 1);
    expect(told).toEqual(["a again+"]);
  });

  it("are told again to a call that never heard that it had one, and counted once", () => {
    const { held, told, ask } = permits();
    ask("a");
    held.grant(1, 0);
    ask("a", 5);
    expect([told, held.inFlight]).toEqual([["a+", "a+"], 1]);
  });

  it("are refused to all who wait when the run ends, and stay with who has one", () => {
    const { held, told, ask } = permits();
    ask("a");
    ask("b");
    held.grant(1, 0);
    held.refuseWaiting();
    expect([told, held.inFlight, held.waiting]).toEqual([["a+", "b-"], 1, 0]);
  });
});

describe("a permit", () => {
  function inFlight() {
    const all = permits();
    all.ask("a");
    all.held.grant(1, 0);
    return all;
  }

  it("ends by itself when its Worker has not been heard of for as long as a lease lives", () => {
    const { held } = inFlight();
    expect([held.expire(LEASE_TTL_MS - 1), held.isDue(LEASE_TTL_MS - 1)]).toEqual([[], false]);
    expect([held.nextEndMs(), held.isDue(LEASE_TTL_MS)]).toEqual([LEASE_TTL_MS, true]);
    expect(held.expire(LEASE_TTL_MS)).toEqual([{ tool: "t", latencyMs: LEASE_TTL_MS }]);
    expect([held.inFlight, held.nextEndMs()]).toEqual([0, null]);
  });

  it("lives on with every beat", () => {
    const { held } = inFlight();
    expect(held.beat({ callId: "a", tool: "t" }, 20_000)).toBe(true);
    expect(held.expire(LEASE_TTL_MS)).toEqual([]);
    expect(held.expire(20_000 + LEASE_TTL_MS)).toEqual([{ tool: "t", latencyMs: 20_000 + LEASE_TTL_MS }]);
  });

  it("that was given up tells its Worker so with the next beat, and is told to the log once", () => {
    const { held, told, ask } = inFlight();
    expect(held.abort(7)).toEqual([{ tool: "t", latencyMs: 7 }]);
    expect(held.beat({ callId: "a", tool: "t" }, 8)).toBe(false);
    expect(held.end("a")).toBe(false);
    expect([held.inFlight, held.abort(9)]).toEqual([0, []]);
    ask("a", 10, "a again");
    expect(told.at(-1)).toBe("a again-");
  });

  it("that a restart forgot is taken up by the next beat", () => {
    const { held } = permits();
    expect(held.beat({ callId: "a", tool: "t" }, 50)).toBe(true);
    expect(held.inFlight).toBe(1);
    expect(held.end("a")).toBe(true);
    expect(held.inFlight).toBe(0);
  });

  it("that is given back twice is given back once", () => {
    const { held, ask } = inFlight();
    ask("b");
    held.end("a");
    held.end("a");
    held.grant(1, 1);
    expect(held.inFlight).toBe(1);
  });

  it("may be given back by a call that still waits: it gets none", () => {
    const { held, told, ask } = permits();
    ask("a");
    held.end("a");
    held.grant(1, 0);
    expect([told, held.inFlight]).toEqual([[], 0]);
  });
});

it("forgets the oldest of many calls that were given up", () => {
  const { held } = permits();
  for (let at = 0; at <= TOOL_CALLS_OVER_KEPT; at += 1) held.beat({ callId: `c${at}`, tool: "t" }, 0);
  held.abort(1);
  expect(held.beat({ callId: "c1", tool: "t" }, 2)).toBe(false);
  expect(held.beat({ callId: "c0", tool: "t" }, 2)).toBe(true);
});
