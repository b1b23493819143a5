/** Every way in which a single call can end, through one table: its event, its coalescing window, its reply. */
import { describe, expect, it } from "vitest";
import { endCall, endCalls } from "../../../../src/run/steps/end-call.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { expireLeases, settle } from "../../../../src/run/steps/settle.ts";
import type { Reason } from "../../../../src/errors.ts";
import { LEASE_TTL_MS } from "../../../../src/limits.ts";
import { failure, success, TestEngine } from "../../../support/engine.ts";

const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const NO = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
const NEVER = { attempts: 0, startedAtMs: null, usage: NO };
const ONCE = { attempts: 1, startedAtMs: 0 };
/** The client's, with which every call "c" comes. */
const TRACE = { parent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, state: "vendor=1" };

/** The step at which every call "c" is made. */
const STEP = { step: 3, steps: 20 };

type Fields = Parameters<TestEngine["call"]>[2];

/** An engine with one queued single call, "c". */
function queued(fields: Fields = {}, usd = 1_000): TestEngine {
  const engine = new TestEngine({ limits: { usd } });
  engine.call("c", 0, { trace: TRACE, ...STEP, ...fields });
  return engine;
}

function running(fields: Fields = {}): TestEngine {
  const engine = queued(fields);
  expect(engine.startAll(0)).toEqual(["c"]);
  return engine;
}

/** The call follows "lead", which is in flight. */
function following(): TestEngine {
  const engine = new TestEngine();
  engine.call("lead", 0, { dedupeKey: "k" });
  expect(engine.startAll(0)).toEqual(["lead"]);
  engine.call("c", 60, { trace: TRACE, ...STEP, dedupeKey: "k" });
  expect(engine.startAll(60)).toEqual([]);
  return engine;
}

/** The call waits for its retry, which its Worker has requested. */
function retried(): TestEngine {
  const engine = running();
  settle(engine.state, "c.1", failure("transient"), 10);
  engine.call("c", 10, { trace: TRACE, ...STEP, attempt: 2, delayMs: 500 });
  return engine;
}

const WAYS: Record<string, [from: () => TestEngine, act: (engine: TestEngine) => unknown, event: object]> = {
  "completed by its attempt": [
    running,
    ({ state }) => settle(state, "c.1", success({ promptTokens: 40 }), 10),
    { status: "completed", ...ONCE, usage: { ...NO, promptTokens: 40, costNanoUsd: 40 }, model: "gpt-x-2026" },
  ],
  "failed by its attempt": [
    running,
    ({ state }) => settle(state, "c.1", failure("rejected"), 10),
    { status: "failed", ...ONCE, model: null },
  ],
  "failed because its Worker was lost": [
    () => running({ onLost: "fail" }),
    ({ state }) => expireLeases(state, LEASE_TTL_MS),
    { status: "failed", ...ONCE },
  ],
  "refused for its budget": [
    () => queued({}, 10),
    (engine) => engine.startAll(10),
    { status: "failed", ...NEVER, reason: { reason: "budget_exhausted" } },
  ],
  "ended before it started": [
    queued,
    ({ state }) => expect(endCall(state, "c", STOPPED, 10)).toBe(true),
    { status: "failed", ...NEVER, reason: STOPPED },
  ],
  "ended before its retry": [
    retried,
    ({ state }) => expect(endCall(state, "c", STOPPED, 20)).toBe(true),
    { status: "failed", attempts: 1, startedAtMs: null, usage: NO, reason: STOPPED },
  ],
  "ended while it follows another": [
    following,
    ({ state }) => expect(endCall(state, "c", STOPPED, 70)).toBe(true),
    { status: "failed", ...NEVER, reason: STOPPED },
  ],
  "ended with all calls of its run": [
    following,
    ({ state }) => expect(endCalls(state, STOPPED, 70).map(({ callId }) => callId)).toEqual(["c"]),
    { status: "failed", ...NEVER, reason: STOPPED },
  ],
  "past its deadline": [
    () => queued({ deadlineMs: 100 }),
    ({ state }) => expireQueued(state, null, 100),
    { status: "failed", ...NEVER, reason: { reason: "deadline_exceeded", deadlineMs: 100 } },
  ],
  "completed with the outcome of an equal call": [
    following,
    ({ state }) => settle(state, "lead.1", success({ promptTokens: 40 }), 70),
    { status: "completed", ...NEVER, model: "gpt-x-2026" },
  ],
  "failed with the outcome of an equal call": [
    following,
    ({ state }) => settle(state, "lead.1", failure("rejected"), 70),
    { status: "failed", ...NEVER },
  ],
};

describe.each(Object.entries(WAYS))("a single call that is %s", (_, [from, act, event]) => {
  it("has one event of its end with its step and its client's trace, counts in its window, and is no longer queued", () => {
    const engine = from();
    const { state } = engine;
    const window = [...state.calls.values(), ...[...state.attempts.values()].map(({ call }) => call)].find(
      (call) => call?.callId === "c",
    )?.window;
    state.log.take();
    act(engine);
    const ends = state.log.take()?.events.filter((each) => each.event === "slot_completed" && each.callId === "c");
    expect(ends).toMatchObject([{ index: null, callId: "c", trace: TRACE, ...STEP, ...event }]);
    if (window != null) expect(window.completed + window.failed).toBe(window.members);
    expect([state.calls.size, state.queue.readyCount + state.queue.delayedCount]).toEqual([0, 0]);
    expect(endCall(state, "c", STOPPED, 200)).toBe(false);
  });
});
