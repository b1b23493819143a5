import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { drainGroup } from "../../../../src/run/steps/end-slot.ts";
import { LearnedCaps } from "../../../../src/run/learned/caps.ts";
import type { RunEvent } from "../../../../src/run/log.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import {
  COMPLETION_TOKENS_DEFAULT,
  LEARNED_ANSWERS_FIRST,
  LEARNED_ANSWERS_MIN,
  LEARNED_ANSWERS_PER_FLIGHT,
  LEARNED_CAP_TOKENS_FIRST_MIN,
  LEARNED_CAP_TOKENS_MIN,
  LEARNED_CAP_TOKENS_SHORT,
  LEARNED_MODELS_MAX,
} from "../../../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const target = makeTarget();
const WHOLE = { target, capTokens: COMPLETION_TOKENS_DEFAULT, capKind: "default" } as const;
const FIRST = slotIdOf(1, 0);
const CAP = LEARNED_CAP_TOKENS_MIN;
/** Less than four full caps, so that learned caps are used; enough for the calls of one test. */
const TIGHT = 4 * 2 * COMPLETION_TOKENS_DEFAULT;

/** An answer of so many tokens that ended at its cap. */
function cutAt(completionTokens: number): Outcome {
  const whole = success({ promptTokens: 50, completionTokens });
  return whole.kind === "success" ? { ...whole, text: "cut", finishReason: "length" } : whole;
}

function learnFrom(caps: LearnedCaps, count: number, lease: Parameters<LearnedCaps["learn"]>[1] = WHOLE): void {
  for (let at = 0; at < count; at++) caps.learn(success({ completionTokens: 10 }), lease);
}

describe("the learned cap of a model", () => {
  it("is null before enough answers", () => {
    const caps = new LearnedCaps();
    learnFrom(caps, LEARNED_ANSWERS_FIRST - 1);
    expect(caps.capOf(target, 0)).toBeNull();
    learnFrom(caps, 1);
    expect(caps.capOf(target, 0)).toBe(LEARNED_CAP_TOKENS_FIRST_MIN);
    learnFrom(caps, LEARNED_ANSWERS_MIN);
    expect(caps.capOf(target, 0)).toBe(CAP);
    expect(caps.capOf({ ...target, model: "other" }, 0)).toBeNull();
    expect(caps.capOf({ ...target, upstream: "other" }, 0)).toBeNull();
  });

  it("is null while half as many attempts are in flight as answers have arrived: short answers arrive first", () => {
    const caps = new LearnedCaps();
    learnFrom(caps, LEARNED_ANSWERS_MIN);
    expect(caps.capOf(target, LEARNED_ANSWERS_MIN / LEARNED_ANSWERS_PER_FLIGHT + 1)).toBeNull();
    expect(caps.capOf(target, LEARNED_ANSWERS_MIN / LEARNED_ANSWERS_PER_FLIGHT)).toBe(CAP);
  });

  it.each<[string, Outcome, Partial<Parameters<LearnedCaps["learn"]>[1]>]>([
    ["a call that named its cap", success({ completionTokens: 10 }), { capKind: "client" }],
    ["a cap that the budget lowered", success({ completionTokens: 10 }), { capKind: "budget" }],
    ["an answer that a learned cap cut", cutAt(CAP), { capKind: "learned", capTokens: CAP }],
    ["an answer without usage", success(null), {}],
    ["an upstream that counts nothing", success({ completionTokens: 0 }), {}],
    ["a failure", failure("transient"), {}],
  ])("is not learned from %s", (_, outcome, lease) => {
    const caps = new LearnedCaps();
    for (let at = 0; at < 2 * LEARNED_ANSWERS_MIN; at++) caps.learn(outcome, { ...WHOLE, ...lease });
    expect(caps.capOf(target, 0)).toBeNull();
  });

  it("is remembered for LEARNED_MODELS_MAX models, and those stay", () => {
    const caps = new LearnedCaps();
    for (let at = 0; at <= LEARNED_MODELS_MAX; at++)
      learnFrom(caps, LEARNED_ANSWERS_MIN, { ...WHOLE, target: { ...target, model: `m${at}` } });
    expect(caps.capOf({ ...target, model: "m0" }, 0)).toBe(CAP);
    expect(caps.capOf({ ...target, model: `m${LEARNED_MODELS_MAX - 1}` }, 0)).toBe(CAP);
    expect(caps.capOf({ ...target, model: `m${LEARNED_MODELS_MAX}` }, 0)).toBeNull();
  });
});

/** A run that has learned the smallest cap, with one group of calls that name none. */
function learned(count = 1, limits: { usd: number } = { usd: TIGHT }, fields: Parameters<TestEngine["open"]>[1] = {}) {
  const engine = new TestEngine({ limits });
  learnFrom(engine.state.learnedCaps, LEARNED_ANSWERS_MIN);
  const group = engine.open(alike(count, { maxTokens: null }), fields);
  makeTight(engine);
  return { engine, group, state: engine.state };
}

/** Queues more than the budget pays for at the full cap, in a group that starts nothing. */
function makeTight(engine: TestEngine): void {
  engine.open(alike(10, { maxTokens: null }), { concurrency: 0 });
}

const events = ({ state }: { state: TestEngine["state"] }): RunEvent[] => state.log.take()?.events ?? [];
const leases = (engine: TestEngine, nowMs: number) => engine.turn([512], nowMs).assignments.map(({ lease }) => lease);

describe("a slot whose answer ended at a learned cap", () => {
  it("is requested again at once with the full cap, before fresh slots, and pays for both", () => {
    const { engine, group, state } = learned(2, undefined, { concurrency: 1 });
    expect(leases(engine, 0)).toMatchObject([{ slotId: FIRST, attempt: 1, capTokens: CAP, capKind: "learned" }]);
    expect(settle(state, `${FIRST}.1`, cutAt(CAP), 5)).toMatchObject({ retryInMs: 0, charge: { usd: 50 + 2 * CAP } });
    expect(group.stateOf(0)).toBe("queued");
    const full = { capTokens: COMPLETION_TOKENS_DEFAULT, capKind: "default" };
    expect(leases(engine, 5)).toMatchObject([{ slotId: FIRST, attempt: 2, ...full }]);
    settle(state, `${FIRST}.2`, success({ promptTokens: 50, completionTokens: 1_500 }), 9);
    expect(group.stateOf(0)).toBe("completed");
    const row = state.takeWrites().slots.findLast(({ id }) => id === FIRST);
    const spent = { promptTokens: 100, completionTokens: CAP + 1_500, costNanoUsd: 100 + 2 * (CAP + 1_500) };
    expect(row).toMatchObject({ state: "completed", text: "ok", finishReason: "stop", attempts: 2, ...spent });
    expect(row).not.toHaveProperty("cappedBy");
    expect(events(engine)).toContainEqual(
      expect.objectContaining({ event: "retry_scheduled", index: 0, attempt: 2, delayMs: 0, reason: null }),
    );
  });

  it("is not requested a third time: an answer that ends at the full cap is final", () => {
    const { engine, group, state } = learned();
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    leases(engine, 1);
    expect(settle(state, `${FIRST}.2`, cutAt(COMPLETION_TOKENS_DEFAULT), 2)).toMatchObject({ retryInMs: null });
    expect(group.stateOf(0)).toBe("completed");
  });

  it("has as many attempts left as before", () => {
    const { engine, group, state } = learned();
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    for (const attempt of [2, 3]) {
      expect(leases(engine, 1)).toMatchObject([{ attempt, capKind: "default" }]);
      expect(settle(state, `${FIRST}.${attempt}`, failure("transient"), 1)).toMatchObject({ retryInMs: 0 });
    }
    leases(engine, 1);
    expect(settle(state, `${FIRST}.4`, failure("transient"), 1)).toMatchObject({ retryInMs: null });
    const row = state.takeWrites().slots.at(-1);
    expect(group.stateOf(0)).toBe("failed");
    expect(row).toMatchObject({ state: "failed", attempts: 4, text: null, model: null, finishReason: null });
  });

  it("ends with it, marked, if the rest of the budget pays for less than a short answer may have", () => {
    const { engine, group, state } = learned(1, { usd: 2 * CAP + 100 + 2 * LEARNED_CAP_TOKENS_SHORT });
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    expect(leases(engine, 1)).toEqual([]);
    expect(group).toMatchObject({ done: true, status: "completed" });
    const row = state.takeWrites().slots.at(-1);
    const kept = { state: "completed", text: "cut", finishReason: "length", cappedBy: "budget", reason: null };
    expect(row).toMatchObject({ attempts: 1, notBeforeMs: null, ...kept });
    const end = { event: "slot_completed", status: "completed", attempts: 1, cappedBy: "budget" };
    expect(events(engine)).toContainEqual(expect.objectContaining(end));
    expect(state.ledger.spent.usd).toBe(50 + 2 * CAP);
  });

  it("keeps it when its next attempt fails", () => {
    const { engine, group, state } = learned(1, { usd: 150 + 2 * CAP + 100 + 2 * COMPLETION_TOKENS_DEFAULT });
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    expect(leases(engine, 1)).toMatchObject([{ attempt: 2 }]);
    settle(state, `${FIRST}.2`, failure("unknown"), 2);
    expect(leases(engine, 2)).toEqual([]);
    expect(group.stateOf(0)).toBe("completed");
    expect(state.takeWrites().slots.at(-1)).toMatchObject({ text: "cut", cappedBy: "budget", attempts: 2 });
  });

  it("waits for attempts in flight that may free what the full cap needs", () => {
    const { engine, group, state } = learned(3, { usd: 3 * (100 + 2 * CAP) + 2 * CAP });
    expect(leases(engine, 0)).toHaveLength(3);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    // When idle, 3 × 164 + 64 less the spending cannot pay for a longer answer: it ends with the short one.
    expect(leases(engine, 1)).toEqual([]);
    expect(group.stateOf(0)).toBe("completed");
    // The full cap needs 100 + 2 × 4,096, which is there when the two others have ended.
    const roomy = learned(3, { usd: 8_560 });
    leases(roomy.engine, 0);
    settle(roomy.state, `${FIRST}.1`, cutAt(CAP), 1);
    expect(leases(roomy.engine, 1)).toEqual([]);
    expect(roomy.group.stateOf(0)).toBe("queued");
    settle(roomy.state, `${FIRST + 1}.1`, success({ promptTokens: 50, completionTokens: 10 }), 2);
    settle(roomy.state, `${FIRST + 2}.1`, success({ promptTokens: 50, completionTokens: 10 }), 2);
    expect(leases(roomy.engine, 2)).toMatchObject([{ slotId: FIRST, capTokens: COMPLETION_TOKENS_DEFAULT }]);
  });

  it("gets what the rest of the budget pays for if that is a longer answer, but not the full cap", () => {
    const { engine, group, state } = learned(3, { usd: 3_000 });
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    expect(leases(engine, 1)).toEqual([]);
    expect(group.stateOf(0)).toBe("queued");
    for (const other of [1, 2])
      settle(state, `${FIRST + other}.1`, success({ promptTokens: 50, completionTokens: 10 }), 2);
    expect(leases(engine, 2)).toMatchObject([{ slotId: FIRST, capKind: "budget" }]);
  });

  it("ends with it, marked, if its group's deadline has passed", () => {
    const reason = { reason: "deadline_exceeded", deadlineMs: 5 } as const;
    const drained = { state: "failed", reason, cause: "deadline" } as const;
    const queued = learned();
    leases(queued.engine, 0);
    settle(queued.state, `${FIRST}.1`, cutAt(CAP), 1);
    drainGroup(queued.state, queued.group, drained, 6);
    const running = learned(2, undefined, { concurrency: 1 });
    leases(running.engine, 0);
    drainGroup(running.state, running.group, drained, 6);
    settle(running.state, `${FIRST}.1`, cutAt(CAP), 7);
    for (const { state, group } of [queued, running]) {
      expect(group.stateOf(0)).toBe("completed");
      const row = state.takeWrites().slots.findLast(({ id }) => id === FIRST);
      expect(row).toMatchObject({ text: "cut", finishReason: "length", cappedBy: "budget" });
    }
  });

  it("loses it if it is cancelled", () => {
    const { engine, group, state } = learned();
    leases(engine, 0);
    settle(state, `${FIRST}.1`, cutAt(CAP), 1);
    const reason = { reason: "cancelled", message: "by the test" } as const;
    drainGroup(state, group, { state: "cancelled", reason, cause: "cancel" }, 2);
    const row = state.takeWrites().slots.at(-1);
    expect(row).toMatchObject({ state: "cancelled", text: null, model: null, finishReason: null });
    expect(row).toMatchObject({ completionTokens: CAP, costNanoUsd: 50 + 2 * CAP });
  });

  it("keeps its followers waiting", () => {
    const engine = new TestEngine({ limits: { usd: TIGHT } });
    learnFrom(engine.state.learnedCaps, LEARNED_ANSWERS_MIN);
    const group = engine.open(alike(2, { maxTokens: null, dedupeKey: "k" }));
    makeTight(engine);
    leases(engine, 0);
    settle(engine.state, `${FIRST}.1`, cutAt(CAP), 1);
    expect(leases(engine, 1)).toHaveLength(1);
    settle(engine.state, `${FIRST}.2`, success({ promptTokens: 50, completionTokens: 2_000 }), 2);
    expect(group.status).toBe("completed");
    expect(engine.state.takeWrites().slots.map(({ text }) => text)).toEqual(["ok", "ok"]);
  });
});

describe("the cap of a call that names none", () => {
  it.each<[string, Partial<Parameters<TestEngine["open"]>[0][0]>, Parameters<TestEngine["open"]>[1], string]>([
    ["learned in a group", {}, {}, "learned"],
    ["the default where its group wants the worst", { reserve: "worst" }, {}, "default"],
    ["the default for a single call that is stored", {}, { single: "alone" }, "default"],
    ["learned for a single call that is stored and wants it", { reserve: "learned" }, { single: "alone" }, "learned"],
  ])("is %s", (_, fields, header, capKind) => {
    const engine = new TestEngine({ limits: { usd: TIGHT } });
    learnFrom(engine.state.learnedCaps, LEARNED_ANSWERS_MIN);
    engine.open([{ maxTokens: null, ...fields }], header);
    makeTight(engine);
    expect(leases(engine, 0)).toMatchObject([{ capKind }]);
  });

  it("is the default for a single call that its own Worker executes", () => {
    const engine = new TestEngine({ limits: { usd: TIGHT } });
    learnFrom(engine.state.learnedCaps, LEARNED_ANSWERS_MIN);
    makeTight(engine);
    engine.call("c", 0, { maxTokens: null, reserve: "learned" });
    expect(leases(engine, 0)).toMatchObject([{ capKind: "default", capTokens: COMPLETION_TOKENS_DEFAULT }]);
  });
});
