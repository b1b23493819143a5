/**
 * A run under test: an engine driven the way the run object drives it (apply, dispatch, commit, then answer), beside an
 * account of its own of what was lent, charged and ended, which no crash of the engine touches.
 */
import assert from "node:assert/strict";
import { DIMENSIONS, Ledger, addAmounts, zeroAmounts } from "../../src/budget/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import { dispatch, type Assignment } from "../../src/engine/dispatch.ts";
import { drainGroup, enqueueCall, enqueueSlots, openGroup, withdrawCall } from "../../src/engine/open.ts";
import { PageBuilder, readFacts, type Page } from "../../src/engine/page.ts";
import { expireLeases, heartbeat, settle, type Settled } from "../../src/engine/settle.ts";
import type { Target } from "../../src/engine/shard.ts";
import { slotIdOf } from "../../src/engine/slot.ts";
import { EngineState, type EngineDeps } from "../../src/engine/state.ts";
import type { Reason } from "../../src/errors.ts";
import { LANE_SLOTS } from "../../src/limits.ts";
import { PageCache } from "../../durable-objects/run/pages.ts";
import type { RunSettings } from "../../durable-objects/run/settings.ts";
import { makeHeader, seeded } from "./engine.ts";
import { expectedCharge, outcomeOf, type Charged } from "./engine-charge.ts";
import { MODELS, TARGETS, type Plan, type PlannedCall, type PlannedOutcome, type Step } from "./engine-plan.ts";
import { Rows } from "./engine-rows.ts";
import { snapshotOf } from "./engine-snapshot.ts";

/** An attempt as its executor knows it. */
export type Lent = { assignment: Assignment; callId: string | null };

export class RunUnderTest {
  readonly rows = new Rows();
  readonly plan: Plan;
  readonly #deps: EngineDeps;
  readonly #settings: RunSettings;
  state: EngineState;
  nowMs = 1_763_712_000_000;
  /** Attempts in flight, whatever the engine remembers of them. */
  readonly lent = new Map<string, Lent>();
  /** Single calls that wait for a permit: their next attempt. */
  readonly calls = new Map<string, { attempt: number; call: PlannedCall }>();
  /** Sum of what the attempts that ended must have cost, and how many overran a limit's reservation. */
  readonly charged = { spent: zeroAmounts(), attempts: 0, overruns: 0 };
  /** What each slot's attempts cost together. */
  readonly slotCost = new Map<number, number>();
  readonly #waiting = new Map<number, number>();
  readonly #endedAttempts: string[] = [];
  #pages: PageCache;
  #nextGroup = 1;
  #nextCall = 1;

  constructor(plan: Plan) {
    this.plan = plan;
    this.#pages = this.#newPages();
    this.#deps = {
      random: seeded(plan.seed),
      factsOf: (slotId) => this.#pages.facts(slotId),
      targetOf: (group, modelIndex) => TARGETS[group.models[modelIndex] ?? ""] ?? null,
    };
    const { width, limits } = plan;
    this.#settings = settingsOf(plan);
    this.state = new EngineState({ ledger: new Ledger(limits), width, windowMs: 50 }, this.#deps);
  }

  /** One turn: the step, dispatch to the lanes that wait, commit. Returns the refusals of single calls. */
  turn(step: Step): Reason[] {
    if (step.do === "crash") {
      this.#crash(step.inTurn);
      return [];
    }
    this.#apply(step);
    return this.#conclude();
  }

  /** Ends an attempt as planned. */
  settle(attemptId: string, planned: PlannedOutcome): void {
    const lent = this.lent.get(attemptId);
    if (lent === undefined) return;
    const outcome = outcomeOf(lent.assignment, planned, this.nowMs);
    const settled = settle(this.state, attemptId, outcome, this.nowMs);
    if (settled === null) throw new Error(`${attemptId} is in flight but does not settle`);
    this.#account(attemptId, lent, outcome, settled);
  }

  /** Lets everything run to its end: answers come, time passes, lanes are ample. Throws when it stops short of one. */
  finish(answer: PlannedOutcome): void {
    this.turn({ do: "pause", paused: false });
    for (let round = 0; this.#unfinished; round++) {
      assert(round < 1_000, "the run stands still");
      for (let lane = 0; lane < 4; lane++) this.turn({ do: "lane", lane, want: LANE_SLOTS });
      for (const attemptId of this.lent.keys()) this.settle(attemptId, answer);
      // Longer than any delay, cool-down or term that the engine sets.
      this.turn({ do: "advance", ms: 95_000 });
    }
  }

  get #unfinished(): boolean {
    return this.lent.size + this.calls.size > 0 || [...this.state.groups.values()].some((group) => !group.done);
  }

  #apply(step: Exclude<Step, { do: "crash" }>): void {
    const { state, nowMs } = this;
    switch (step.do) {
      case "open":
        return this.#open(step);
      case "call":
        return this.#call(step);
      case "withdraw":
        return this.#withdraw(step.pick);
      case "lane":
        return this.#offer(step.lane, step.want);
      case "settle": {
        const attemptId = picked([...this.lent.keys()], step.pick);
        return attemptId === null ? undefined : this.settle(attemptId, step.outcome);
      }
      case "settle_again": {
        const attemptId = picked(this.#endedAttempts, step.pick);
        const failed: Outcome = { kind: "failure", class: "unknown", reason: WHY, retryAfterMs: null, latencyMs: 1 };
        const again = attemptId === null ? null : settle(state, attemptId, failed, nowMs);
        if (again !== null) throw new Error(`${attemptId} settled twice`);
        return;
      }
      case "heartbeat": {
        const ids = [...this.lent.keys()].filter((_, place) => place % step.every === 0);
        const unknown = heartbeat(state, ids, nowMs);
        if (unknown.length > 0) throw new Error(`attempts ${unknown} are in flight but not known`);
        return;
      }
      case "advance":
        this.nowMs += step.ms;
        return;
      case "expire":
        return this.#expire();
      case "drain": {
        const group = picked([...state.groups.values()], step.pick);
        return group === null ? undefined : drainGroup(state, group, { state: step.state, reason: WHY }, nowMs);
      }
      case "pause":
        state.paused = step.paused;
    }
  }

  #open({ calls, concurrency, onError }: Extract<Step, { do: "open" }>): void {
    const seq = this.#nextGroup++;
    const builder = new PageBuilder({});
    const pages: Page[] = [];
    for (const call of calls) {
      const page = builder.add({ body: { prompt: "p" }, facts: factsOf(call) });
      if (page !== null) pages.push(page);
    }
    const last = builder.flush();
    if (last !== null) pages.push(last);
    const count = calls.length;
    const header = makeHeader({ seq, count, concurrency, onError, openedAtMs: this.nowMs, models: builder.models });
    this.rows.putGroup({ header, defaultsJson: "{}", sealed: true }, pages);
    const group = openGroup(this.state, header);
    for (const page of pages) {
      this.#pages.keep(slotIdOf(seq, page.firstIndex), page, builder.models);
      enqueueSlots(this.state, group, page.firstIndex, readFacts(page.facts, builder.models));
    }
  }

  #call({ call, delayMs }: Extract<Step, { do: "call" }>): void {
    const target = TARGETS[MODELS[call.model] ?? ""];
    if (target === undefined) return;
    const callId = `call-${this.#nextCall++}`;
    this.calls.set(callId, { attempt: 1, call });
    enqueueCall(
      this.state,
      { callId, attempt: 1, facts: factsOf(call), target, deadlineMs: null },
      delayMs,
      this.nowMs,
    );
  }

  #withdraw(pick: number): void {
    const callId = picked([...this.calls.keys()], pick);
    if (callId === null) return;
    if (!withdrawCall(this.state, callId)) throw new Error(`${callId} waits but cannot be withdrawn`);
    if (withdrawCall(this.state, callId)) throw new Error(`${callId} was withdrawn twice`);
    this.calls.delete(callId);
  }

  #offer(lane: number, want: number): void {
    const held = this.state.shards.get(lane)?.leases.size ?? 0;
    if (held + want <= LANE_SLOTS) this.#waiting.set(lane, want);
  }

  #expire(): void {
    const over = [...this.lent].filter(([id]) => (this.state.attempts.get(id)?.lease.expiresAtMs ?? 0) <= this.nowMs);
    const count = expireLeases(this.state, this.nowMs);
    if (count !== over.length) throw new Error(`${count} leases expired, ${over.length} were over`);
    for (const [id, lent] of over) this.#account(id, lent, null, null);
  }

  #conclude(): Reason[] {
    const { state, nowMs } = this;
    const offers = new Map(this.#waiting);
    const { assignments, refused } = dispatch(state, offers, nowMs);
    if (assignments.length > 0) this.#mustFit();
    this.rows.commit(state, nowMs);
    for (const assignment of assignments) {
      const { attemptId } = assignment.lease;
      if (this.lent.has(attemptId)) throw new Error(`${attemptId} was lent twice`);
      const callId = assignment.lane === null ? assignment.call.callId : null;
      this.lent.set(attemptId, { assignment, callId });
      if (callId === null) continue;
      if (!this.calls.delete(callId)) throw new Error(`${callId} started but did not wait`);
    }
    for (const assignment of assignments) if (assignment.lane !== null) this.#waiting.delete(assignment.lane);
    for (const { call } of refused) this.calls.delete(call.callId);
    return refused.map(({ reason }) => reason);
  }

  /** Whatever an upstream billed before: what has just started must have fitted. */
  #mustFit(): void {
    const { spent, reserved, limits } = this.state.ledger;
    for (const dimension of DIMENSIONS) {
      const limit = limits[dimension];
      if (limit !== null && spent[dimension] + reserved[dimension] > limit)
        throw new Error(`${dimension} is overdrawn`);
    }
  }

  /** Enters an attempt's end in the test's own books; `settled` null = its lease expired. */
  #account(attemptId: string, lent: Lent, outcome: Outcome | null, settled: Settled | null): void {
    const expected: Charged = expectedCharge(lent.assignment, outcome, this.plan.limits);
    addAmounts(this.charged.spent, expected.charge);
    this.charged.attempts += 1;
    if (expected.overrun) this.charged.overruns += 1;
    this.lent.delete(attemptId);
    this.#endedAttempts.push(attemptId);
    const { lease } = lent.assignment;
    if (lease.slotId !== null) {
      this.slotCost.set(lease.slotId, (this.slotCost.get(lease.slotId) ?? 0) + expected.charge.usd);
    }
    if (settled === null || lent.assignment.lane !== null || settled.retryInMs === null) return;
    // Its client is there and tries again, as the route does.
    const { callId, facts, target, attempt } = lent.assignment.call;
    const { promptBytes, maxTokens, priority } = facts;
    const call = { model: MODELS.indexOf(facts.model ?? ""), promptBytes, maxTokens, priority };
    this.calls.set(callId, { attempt: attempt + 1, call });
    enqueueCall(
      this.state,
      { callId, attempt: attempt + 1, facts, target, deadlineMs: null },
      settled.retryInMs,
      this.nowMs,
    );
  }

  /** A new instance on the same rows: queued single calls and waiting lanes are gone; so is a turn not yet committed. */
  #crash(inTurn: boolean): void {
    const before = snapshotOf(this.state);
    if (inTurn) dispatch(this.state, new Map([[0, LANE_SLOTS]]), this.nowMs);
    this.#waiting.clear();
    this.calls.clear();
    this.#pages = this.#newPages();
    const targetOfLease = ({ upstream, model }: { upstream: string; model: string }): Target => {
      const target = TARGETS[`${upstream}/${model}`];
      if (target === undefined) throw new Error(`no lease goes to ${upstream}/${model}`);
      return target;
    };
    this.state = this.rows.rebuild(this.#settings, { ...this.#deps, targetOfLease }, this.nowMs);
    assert.deepEqual(snapshotOf(this.state), before, "rows bring back what was there");
  }

  #newPages(): PageCache {
    return new PageCache(
      (slotId) => this.rows.pageOf(slotId),
      (seq) => this.rows.models(seq),
    );
  }
}

const WHY: Reason = { reason: "cancelled", message: "by the test" };

function factsOf({ model, ...asked }: PlannedCall) {
  return { ...asked, messageCount: 1, mediaParts: 0, model: MODELS[model] ?? null, timeoutMs: null };
}

function picked<T>(from: readonly T[], pick: number): T | null {
  return from[pick % Math.max(1, from.length)] ?? null;
}

function settingsOf({ limits, width }: Plan): RunSettings {
  const rules = { maxDepth: 3, defaultModel: null, errorStyle: "bracket", unpriced: "free" } as const;
  const identity = {
    id: "r",
    name: null,
    parentId: null,
    ancestors: [],
    holder: null,
    depth: 0,
    createdAtMs: 0,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
  };
  return { ...identity, ...rules, models: [], limits, maxParallel: width, windowMs: 50, metadataJson: "{}" };
}
