/**
 * A run under test: an engine driven the way the run object drives it (apply, dispatch, commit, then answer), beside an
 * account of its own of what was lent, charged and ended, which no crash of the engine touches.
 */
import assert from "node:assert/strict";
import { Ledger } from "../../src/budget/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import { cancelGroup } from "../../src/engine/cancel.ts";
import { expireQueued } from "../../src/engine/deadline.ts";
import { dispatch } from "../../src/engine/dispatch.ts";
import type { Group, GroupHeader } from "../../src/engine/group.ts";
import { drainGroup, enqueueCall, withdrawCall } from "../../src/engine/open.ts";
import { expireLeases, heartbeat, settle, type Settled } from "../../src/engine/settle.ts";
import { indexOf, slotIdOf } from "../../src/engine/slot.ts";
import { EngineState, type EngineDeps, type SingleCall } from "../../src/engine/state.ts";
import type { Reason } from "../../src/errors.ts";
import { LANE_SLOTS } from "../../src/limits.ts";
import { PageCache } from "../../durable-objects/run/pages.ts";
import type { RunSettings } from "../../durable-objects/run/settings.ts";
import { seeded } from "./engine.ts";
import { Books, failsIfLost, type Lent } from "./engine-books.ts";
import { mustFit, outcomeOf } from "./engine-charge.ts";
import {
  MODELS,
  picked,
  TARGETS,
  type Plan,
  type PlannedCall,
  type PlannedGroup,
  type PlannedOutcome,
  type Step,
} from "./engine-plan.ts";
import { factsOf, settingsOf, startGroup, storeGroup, targetOfLease } from "./engine-opening.ts";
import { Rows } from "./engine-rows.ts";
import { snapshotOf } from "./engine-snapshot.ts";

export class RunUnderTest {
  readonly rows = new Rows();
  readonly plan: Plan;
  readonly #deps: EngineDeps;
  readonly #settings: RunSettings;
  state: EngineState;
  nowMs = 1_763_712_000_000;
  readonly books: Books;
  /** Single calls that wait for a permit: their next attempt. */
  readonly calls = new Map<string, { attempt: number }>();
  readonly #waiting = new Map<number, number>();
  #pages: PageCache;
  #nextGroup = 1;
  #nextCall = 1;
  #waitingFor: Reason | null = null;

  constructor(plan: Plan) {
    this.plan = plan;
    this.books = new Books(plan.limits);
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
    return this.#conclude(step.do === "flush");
  }

  /** Ends an attempt as planned. */
  settle(attemptId: string, planned: PlannedOutcome): void {
    const lent = this.books.lent.get(attemptId);
    if (lent === undefined) return;
    const outcome = outcomeOf(lent.assignment, planned, this.nowMs);
    const settled = settle(this.state, attemptId, outcome, this.nowMs);
    if (settled === null) throw new Error(`${attemptId} is in flight but does not settle`);
    if (outcome.kind === "failure" && outcome.class === "unknown" && failsIfLost(this.state, lent))
      assert.equal(settled.retryInMs, null, `${attemptId} is tried again against its rule`);
    this.#account(attemptId, lent, outcome, settled);
  }

  /** Lets everything run to its end: answers come, time passes, lanes are ample. Throws when it stops short of one. */
  finish(answer: PlannedOutcome): void {
    this.turn({ do: "pause", paused: false });
    for (let round = 0; this.#unfinished; round++) {
      assert(round < 1_000, "the run stands still");
      for (let lane = 0; lane < 4; lane++) this.turn({ do: "lane", lane, want: LANE_SLOTS });
      for (const attemptId of this.books.lent.keys()) this.settle(attemptId, answer);
      // Longer than any delay, cool-down or term that the engine sets.
      this.turn({ do: "advance", ms: 95_000 });
    }
  }

  get #unfinished(): boolean {
    return this.books.lent.size + this.calls.size > 0 || [...this.state.groups.values()].some((group) => !group.done);
  }

  #apply(step: Exclude<Step, { do: "crash" }>): void {
    const { state, nowMs } = this;
    switch (step.do) {
      case "open":
        return this.#open(step);
      case "call":
        return this.#call(step);
      case "single":
        return this.#single(step);
      case "withdraw":
        return this.#withdraw(step.pick);
      case "lane":
        return this.#offer(step.lane, step.want);
      case "settle": {
        const attemptId = picked([...this.books.lent.keys()], step.pick);
        return attemptId === null ? undefined : this.settle(attemptId, step.outcome);
      }
      case "settle_again": {
        const attemptId = picked(this.books.ended, step.pick);
        const failed: Outcome = { kind: "failure", class: "unknown", reason: WHY, retryAfterMs: null, latencyMs: 1 };
        const again = attemptId === null ? null : settle(state, attemptId, failed, nowMs);
        if (again !== null) throw new Error(`${attemptId} settled twice`);
        return;
      }
      case "heartbeat": {
        const ids = [...this.books.lent.keys()].filter((_, place) => place % step.every === 0);
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
        const drained = { state: step.state, reason: WHY, cause: "cancel" } as const;
        return group === null ? undefined : drainGroup(state, group, drained, nowMs);
      }
      case "cancel": {
        const group = picked([...state.groups.values()], step.pick);
        return group === null ? undefined : this.#cancel(group);
      }
      case "flush":
        return;
      case "pause":
        state.paused = step.paused;
    }
  }

  #open({ calls, concurrency, onError, onLost, deadlineMs }: PlannedGroup): void {
    this.#start(calls, { concurrency, onError, onLost, deadlineMs, single: null });
  }

  #single({ call, onLost }: Extract<Step, { do: "single" }>): void {
    const { place } = this.state.window.join(this.nowMs);
    this.#start([call], { onLost, concurrency: 1, single: place });
  }

  #start(calls: readonly PlannedCall[], rules: Partial<GroupHeader>): void {
    const { state, rows, nowMs } = this;
    const seq = this.#nextGroup++;
    const opened = storeGroup(rows, { seq, calls, rules }, nowMs);
    startGroup(
      state,
      opened,
      (page) => this.#pages.keep(slotIdOf(seq, page.firstIndex), page, opened.header.models),
      nowMs,
    );
  }

  #call({ call, delayMs, onLost }: Extract<Step, { do: "call" }>): void {
    const target = TARGETS[MODELS[call.model] ?? ""];
    if (target === undefined) return;
    const callId = `call-${this.#nextCall++}`;
    const asked = { callId, attempt: 1, facts: factsOf(call), target, onLost };
    this.#enqueue({ ...asked, parallelGroupId: null }, delayMs);
  }

  #enqueue(
    call: Pick<SingleCall, "callId" | "attempt" | "facts" | "target" | "onLost"> & { parallelGroupId: string | null },
    delayMs: number,
  ): void {
    this.calls.set(call.callId, { attempt: call.attempt });
    enqueueCall(this.state, { ...call, deadlineMs: null }, delayMs, this.nowMs);
  }

  /** Stops a group: what runs of it is given up, and its lanes must hear of exactly that. */
  #cancel(group: Group): void {
    const { seq } = group.header;
    const givenUp = this.books.ofGroup(seq);
    cancelGroup(this.state, group, WHY, this.nowMs);
    assert(group.done, "a cancelled group is over");
    assert.deepEqual([...this.state.aborted.values()].flat().sort(), givenUp.map(([id]) => id).sort());
    for (const [id, lent] of givenUp) {
      const { lane } = lent.assignment;
      assert(this.state.aborted.get(lane ?? -1)?.includes(id), `the lane of ${id} is told`);
      this.#account(id, lent, null, null);
    }
    this.state.aborted.clear();
  }

  #withdraw(pick: number): void {
    const callId = picked([...this.calls.keys()], pick);
    if (callId === null) return;
    if (!withdrawCall(this.state, callId, this.nowMs)) throw new Error(`${callId} waits but cannot be withdrawn`);
    if (withdrawCall(this.state, callId, this.nowMs)) throw new Error(`${callId} was withdrawn twice`);
    this.calls.delete(callId);
  }

  #offer(lane: number, want: number): void {
    const held = this.state.shards.get(lane)?.leases.size ?? 0;
    if (held + want <= LANE_SLOTS) this.#waiting.set(lane, want);
  }

  #expire(): void {
    const over = [...this.books.lent].filter(
      ([id]) => (this.state.attempts.get(id)?.lease.expiresAtMs ?? 0) <= this.nowMs,
    );
    const count = expireLeases(this.state, this.nowMs);
    if (count !== over.length) throw new Error(`${count} leases expired, ${over.length} were over`);
    for (const [id, lent] of over) {
      const { lease } = lent.assignment;
      if (lease.slotId !== null && failsIfLost(this.state, lent)) {
        const group = this.state.groupOf(lease);
        assert.equal(group?.stateOf(indexOf(lease.slotId)), "failed", `${id} is tried again against its rule`);
      }
      this.#account(id, lent, null, null);
    }
  }

  #conclude(flush: boolean): Reason[] {
    const { state, nowMs } = this;
    state.tellWindowEnds(nowMs);
    const late = expireQueued(state, this.#waitingFor, nowMs);
    assert.deepEqual(late, [], "no single call has a deadline");
    const { assignments, refused, waitingFor } = dispatch(state, new Map(this.#waiting), nowMs);
    this.#waitingFor = waitingFor;
    if (assignments.length > 0) mustFit(state.ledger);
    this.rows.commit(state, nowMs, flush);
    for (const assignment of assignments) {
      const { callId } = this.books.lend(assignment);
      if (callId !== null && !this.calls.delete(callId)) throw new Error(`${callId} started but did not wait`);
    }
    for (const assignment of assignments) if (assignment.lane !== null) this.#waiting.delete(assignment.lane);
    for (const { callId } of [...refused, ...state.landed].map(({ call }) => call)) {
      if (!this.calls.delete(callId)) throw new Error(`${callId} ended but did not wait`);
      this.books.callsEnded.add(callId);
    }
    state.landed = [];
    return refused.map(({ reason }) => reason);
  }

  /** Enters an attempt's end in the test's own books; `settled` null = its lease expired. */
  #account(attemptId: string, lent: Lent, outcome: Outcome | null, settled: Settled | null): void {
    this.books.enter(attemptId, lent, outcome);
    if (settled === null || lent.assignment.lane !== null) return;
    const { callId, facts, target, attempt, onLost } = lent.assignment.call;
    if (settled.retryInMs === null) {
      this.books.callsEnded.add(callId);
      return;
    }
    // Its client is there and tries again, as the route does.
    const { parallelGroupId, retryInMs } = settled;
    this.#enqueue({ callId, attempt: attempt + 1, facts, target, onLost, parallelGroupId }, retryInMs);
  }

  /** A new instance on the same rows: queued single calls and waiting lanes are gone; so is a turn not yet committed. */
  #crash(inTurn: boolean): void {
    const before = snapshotOf(this.state);
    if (inTurn) dispatch(this.state, new Map([[0, LANE_SLOTS]]), this.nowMs);
    this.#waiting.clear();
    this.calls.clear();
    this.#waitingFor = null;
    this.#pages = this.#newPages();
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
