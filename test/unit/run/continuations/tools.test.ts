/** A model that uses tools, wherever the run object and the executor die: what has ended is not paid for again, and no call is made twice. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TOOL_UPSTREAM, type AskedCall, type Outcome, type ToolUse } from "../../../../src/call.ts";
import { LEASE_TTL_MS } from "../../../../src/limits.ts";
import { Ledger, NO_LIMITS, type Limits } from "../../../../src/run/money/ledger.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { talkOf } from "../../../../src/run/continuations/tools.ts";
import type { SlotRecord } from "../../../../src/run/group/record.ts";
import { dispatch, type Assignment } from "../../../../src/run/steps/dispatch.ts";
import { drainGroup } from "../../../../src/run/steps/end-slot.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import { expireLeases, settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import type { Target } from "../../../../src/run/leases/shard.ts";
import { makeFacts, makeHeader, makeTarget } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const SLOT = slotIdOf(1, 0);
const USE: ToolUse = { tools: ["look", "send"], maxTurns: 8, transcript: true };
/** The model asks for two tools, then for one, and then answers. */
const PLAN = [["look", "send"], ["send"]];
const CALLS = PLAN.flat().length;

const call = (id: string, name: string): AskedCall => ({ id, name, arguments: "{}" });
const messageOf = (calls: readonly AskedCall[]): string =>
  JSON.stringify({
    role: "assistant",
    content: null,
    tool_calls: calls.map(({ id, ...called }) => ({ id, type: "function", function: called })),
  });

function toolTarget(names: readonly string[]): Target {
  const tool = { idempotent: !names.includes("send") };
  const model = [...new Set(names)].join(",");
  return makeTarget({ upstream: TOOL_UPSTREAM, gate: TOOL_UPSTREAM, model, tool });
}

/** What the model says after these messages: the next calls of its plan, or what the results say. */
function said(added: readonly string[], plan: readonly (readonly string[])[]): Outcome {
  const messages = added.map((json): { role: string; content: string } => JSON.parse(json));
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
  const answer = { kind: "success", model: "m", usage, latencyMs: 1 } as const;
  const names = plan[turn];
  if (names === undefined) {
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    return { ...answer, text: results.join(", "), finishReason: "stop" };
  }
  const message = messageOf(names.map((name, at) => call(`${turn}.${at}`, name)));
  return { ...answer, text: "", finishReason: "tool_calls", parts: { message } };
}

type Played = {
  record: SlotRecord | null;
  /** How often each call was made, by the ids of the model. */
  made: Map<string, number>;
  /** Turns that the model was paid for. */
  paid: number;
  /** What the run has spent. */
  spent: Limits | Readonly<Record<string, number>>;
  reserved: Readonly<Record<string, number>>;
};

/** `dies`: the moments at which run object and executor die: each attempt has three, before its executor begins, after it has worked, after it has settled. */
function played(
  dies: ReadonlySet<number>,
  {
    use = USE,
    limits = {},
    plan = PLAN,
  }: { use?: ToolUse; limits?: Partial<Limits>; plan?: readonly (readonly string[])[] } = {},
): Played {
  const facts = makeFacts({ toolUse: use });
  // More attempts than the object dies.
  const model = makeTarget({ attemptsMax: 9 });
  const deps: EngineDeps = { random: () => 0, factsOf: () => facts, targetOf: () => model, targetOfTools: toolTarget };
  const targetOfLease = ({ upstream, model: name }: { upstream: string; model: string }): Target =>
    upstream === TOOL_UPSTREAM ? toolTarget(name.split(",")) : model;
  const all = { ...NO_LIMITS, ...limits };
  const settings = settingsOf({ limits: all, width: 3 } as Parameters<typeof settingsOf>[0]);
  const builder = new CallPageBuilder({});
  builder.add({ body: { prompt: "p" }, facts });
  const page = builder.flush();
  if (page === null) throw new Error("no page");
  const header = makeHeader({ count: 1, models: builder.models });
  const rows = new Rows();
  rows.putGroup(
    { header, defaultsJson: "{}", sealed: true, openKey: "o", detach: true, errorStyle: "bracket", named: false },
    [page],
  );
  let state = new EngineState({ ledger: new Ledger(all), width: 3, windowMs: 50 }, deps);
  enqueueSlots(state, state.openGroup(header), 0, readFacts(page.facts, header.models));
  const made = new Map<string, number>();
  let [paid, moment, nowMs] = [0, 0, 0];
  const commit = (): void => void rows.commit(state, nowMs, false);
  const died = (): boolean => {
    if (!dies.has(moment++)) return false;
    state = rows.rebuild(settings, { ...deps, targetOfLease }, nowMs);
    nowMs += 10 * LEASE_TTL_MS;
    expireLeases(state, nowMs);
    commit();
    return true;
  };
  commit();
  for (let turns = 0; state.groups.get(1)?.done === false; turns++) {
    if (turns > 60) throw new Error("the slot makes no progress");
    nowMs += 60_000;
    const { assignments } = dispatch(state, new Map([[0, 1]]), nowMs);
    const jobs = assignments.map(({ lease }) => ({ lease, job: talkOf(state.tried.get(lease.slotId ?? 0)) }));
    commit();
    if (died()) continue;
    const ends = jobs.map(({ lease, job }) => ({ lease, outcome: work(lease, job, made, plan) }));
    paid += jobs.filter(({ job }) => job.round === undefined).length;
    if (died()) continue;
    for (const { lease, outcome } of ends) settle(state, lease.attemptId, outcome, nowMs);
    commit();
    died();
  }
  const { spent, reserved } = state.ledger;
  return { record: rows.slot(SLOT), made, paid, spent, reserved };
}

/** The executor of an attempt: calls tools, but those that may not be called twice only the first time, or the model. */
function work(
  { target }: Assignment["lease"],
  { round, added = [] }: ReturnType<typeof talkOf>,
  made: Map<string, number>,
  plan: readonly (readonly string[])[],
): Outcome {
  if (round === undefined) return said(added, plan);
  expect(target.upstream).toBe(TOOL_UPSTREAM);
  const results = round.calls.map(({ id, name }) => {
    if (round.isRepeated && name === "send") return "not known";
    made.set(id, (made.get(id) ?? 0) + 1);
    return `${name} ${id}`;
  });
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: 0 };
  return { kind: "success", text: JSON.stringify(results), model: "", finishReason: "stop", usage, latencyMs: 1 };
}

describe("a model that uses tools", () => {
  it("is sent its own messages and the results of its calls, and its slot ends with its answer", () => {
    const { record, made, paid, spent, reserved } = played(new Set());
    expect(record).toMatchObject({
      state: "completed",
      text: "look 0.0, send 0.1, send 1.0",
      attempts: 5,
      promptTokens: 30,
      completionTokens: 15,
      course: { toolUse: { turns: 3, calls: { look: 1, send: 2 } } },
    });
    expect(record?.course?.toolUse).not.toHaveProperty("talk");
    const transcript: { role: string }[] = JSON.parse(record?.parts?.transcript ?? "[]");
    expect(transcript.map(({ role }) => role)).toEqual(["assistant", "tool", "tool", "assistant", "tool", "assistant"]);
    expect([paid, made.size, spent["calls"], reserved["calls"]]).toEqual([3, CALLS, 3, 0]);
  });

  it(
    "loses no turn that has ended and calls nothing twice that must not be, wherever run object and executor die",
    { tags: ["slow"] },
    () => {
      fc.assert(
        fc.property(fc.uniqueArray(fc.nat(30), { maxLength: 5 }), (dies) => {
          const { record, made, paid, spent, reserved } = played(new Set(dies));
          expect(record).toMatchObject({
            state: "completed",
            course: { toolUse: { turns: 3, calls: { look: 1, send: 2 } } },
          });
          for (const [id, times] of made) expect(times, id).toBeLessThanOrEqual(id === "0.0" ? 2 : 1);
          // Each death repeats at most the turn in flight; an attempt whose executor was lost counts as a call.
          expect(paid).toBeLessThanOrEqual(3 + dies.length);
          expect(spent["calls"]).toBeGreaterThanOrEqual(paid);
          expect(spent["calls"]).toBeLessThanOrEqual(3 + dies.length);
          expect(reserved["calls"]).toBe(0);
        }),
        { numRuns: 300 },
      );
    },
  );

  it("is told that a result is not known if its executor was lost twice", () => {
    // The first attempt of the model ends at moment 2; the round begins at 3.
    const { record, made } = played(new Set([4, 5]));
    expect(record?.text).toMatch(/^Error: the call was interrupted.*, Error: the call was interrupted.*, send 1\.0$/);
    expect(made.get("0.1")).toBe(1);
  });

  it("ends after its last turn, with the calls that it still asks for", () => {
    const { record, made } = played(new Set(), { use: { ...USE, maxTurns: 2 } });
    expect(record).toMatchObject({ state: "completed", finishReason: "max_turns", course: { toolUse: { turns: 2 } } });
    expect(record?.parts?.message).toBe(messageOf([call("1.0", "send")]));
    expect(made.size).toBe(2);
  });

  it("ends with what it has asked for if the budget pays for no further turn", () => {
    const { record, spent } = played(new Set(), { limits: { calls: 1 } });
    expect(record).toMatchObject({
      state: "completed",
      finishReason: "tool_budget",
      reason: null,
      course: { toolUse: { turns: 1, calls: { look: 1, send: 1 } } },
    });
    expect(record?.parts?.message).toBe(messageOf([call("0.0", "look"), call("0.1", "send")]));
    expect(spent["calls"]).toBe(1);
  });

  it("ends with a message that asks for tools that the run does not call, and makes none of its calls", () => {
    const { record, made } = played(new Set(), { plan: [["look", "weather"]] });
    expect(record).toMatchObject({
      state: "completed",
      finishReason: "tool_calls",
      course: { toolUse: { calls: {} } },
    });
    expect(made.size).toBe(0);
  });

  it("reserves what is really sent: each turn for its own prompt, calls of tools for nothing", () => {
    const facts = makeFacts({ toolUse: USE, promptBytes: 100 });
    const deps: EngineDeps = {
      random: () => 0,
      factsOf: () => facts,
      targetOf: () => makeTarget(),
      targetOfTools: toolTarget,
    };
    const ledger = new Ledger({ ...NO_LIMITS, prompt_tokens: 100_000 });
    const state = new EngineState({ ledger, width: 3, windowMs: 50 }, deps);
    enqueueSlots(state, state.openGroup(makeHeader()), 0, [facts]);
    const reserved: number[] = [];
    for (let turn = 0; state.groups.get(1)?.done === false && turn < 9; turn++) {
      const [first] = dispatch(state, new Map([[0, 1]]), turn).assignments;
      if (first === undefined) throw new Error("nothing starts");
      reserved.push(first.lease.amounts.prompt_tokens);
      const job = talkOf(state.tried.get(SLOT));
      settle(state, first.lease.attemptId, work(first.lease, job, new Map(), PLAN), turn);
    }
    const result = (id: string, content: string) => JSON.stringify({ role: "tool", tool_call_id: id, content }).length;
    const first =
      messageOf([call("0.0", "look"), call("0.1", "send")]).length +
      result("0.0", "look 0.0") +
      result("0.1", "send 0.1");
    const second = first + messageOf([call("1.0", "send")]).length + result("1.0", "send 1.0");
    expect([reserved[1], reserved[3]]).toEqual([0, 0]);
    expect((reserved[2] ?? 0) - (reserved[0] ?? 0)).toBeGreaterThanOrEqual(first);
    expect((reserved[4] ?? 0) - (reserved[0] ?? 0)).toBeGreaterThanOrEqual(second);
  });

  it("ends as its group does if that is cancelled while its tools are called", () => {
    const facts = makeFacts({ toolUse: USE });
    const deps: EngineDeps = {
      random: () => 0,
      factsOf: () => facts,
      targetOf: () => makeTarget(),
      targetOfTools: toolTarget,
    };
    const state = new EngineState({ ledger: new Ledger({ ...NO_LIMITS }), width: 3, windowMs: 50 }, deps);
    const group = state.openGroup(makeHeader());
    enqueueSlots(state, group, 0, [facts]);
    for (const turn of [1, 2]) {
      const [first] = dispatch(state, new Map([[0, 1]]), turn).assignments;
      if (first === undefined) throw new Error("nothing starts");
      const reason = { reason: "cancelled", message: "by the test" } as const;
      if (turn === 2) drainGroup(state, group, { state: "cancelled", reason, cause: "cancel" }, turn);
      settle(state, first.lease.attemptId, work(first.lease, talkOf(state.tried.get(SLOT)), new Map(), PLAN), turn);
    }
    expect(group.stateOf(0)).toBe("cancelled");
  });
});
