/**
 * A run under test: an engine driven like the run object drives it (apply, dispatch, commit, then reply), and books of
 * the tests' own, which survive a crash of the engine.
 */
import assert from "node:assert/strict";
import { Ledger } from "../../src/run/money/ledger.ts";
import { RunLog } from "../../src/run/log.ts";
import type { Outcome } from "../../src/call.ts";
import { endCall } from "../../src/run/steps/end-call.ts";
import { endWindows } from "../../src/run/steps/restore.ts";
import type { SingleCall } from "../../src/run/leases/single-call.ts";
import { cancelGroup } from "../../src/run/steps/cancel.ts";
import { expireQueued } from "../../src/run/steps/deadline.ts";
import { drainGroup } from "../../src/run/steps/end-slot.ts";
import { dispatch } from "../../src/run/steps/dispatch.ts";
import type { Group, GroupHeader } from "../../src/run/group/group.ts";
import { isTooShort } from "../../src/run/learned/caps.ts";
import { enqueueCall } from "../../src/run/steps/enqueue.ts";
import type { Settled } from "../../src/run/leases/settled.ts";
import { expireLeases, heartbeat, settle } from "../../src/run/steps/settle.ts";
import { workerOf } from "../../src/run/leases/shard.ts";
import { indexOf, slotIdOf } from "../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../src/run/state.ts";
import type { Reason } from "../../src/errors.ts";
import { WAITING_FETCHES_DEFAULT, LEARNED_ANSWERS_MIN } from "../../src/limits.ts";
import { PageCache } from "../../durable-objects/run/store/page-cache.ts";
import { addOpening } from "../../durable-objects/run/store/rebuild.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { seeded, success } from "./engine.ts";
import { Books, failsIfLost, type Lent } from "./engine-books.ts";
import { mustFit, outcomeOf } from "./engine-charge.ts";
import {
  LEASED,
  MODELS,
  picked,
  RESOLVED,
  type Plan,
  type PlannedCall,
  type PlannedGroup,
  type PlannedOutcome,
  type Step,
} from "./engine-plan.ts";
import { factsOf, settingsOf, startGroup, storeGroup, targetOfLease } from "./engine-opening.ts";
import { PlannedGates } from "./engine-gates.ts";
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
  readonly gates = new PlannedGates();
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
      targetOf: (group, modelIndex) => RESOLVED[group.models[modelIndex] ?? ""] ?? null,
    };
    const { width, limits } = plan;
    this.#settings = settingsOf(plan);
    const log = new RunLog(0);
    addOpening(log, this.#settings);
    this.state = new EngineState({ ledger: new Ledger(limits), width, windowMs: 50, hasGates: true, log }, this.#deps);
    teachCaps(this.state);
  }

  /** One turn: the step, dispatch to the lanes that wait, commit. Returns the refusals of single calls. */
  turn(step: Step): Reason[] {
    if (step.do === "crash") {
      this.#crash(step.inTurn);
      return [];
    }
    this.#apply(step);
    return this.#finishTurn(step.do === "flush");
  }

  /** Ends an attempt as planned. */
  settle(attemptId: string, planned: PlannedOutcome): void {
    const lent = this.books.lent.get(attemptId);
    if (lent === undefined) return;
    const outcome = outcomeOf(lent.assignment, planned, this.nowMs);
    const settled = settle(this.state, attemptId, outcome, this.nowMs);
    if (settled === null) throw new Error(`${attemptId} is in flight but does not settle`);
    if (outcome.kind === "failure" && outcome.class === "unknown" && failsIfLost(this.state, lent))
      assert.equal(settled.retryInMs, null, `${attemptId} is retried against its rule`);
    const { lease } = lent.assignment;
    if (isTooShort(outcome, lease) && this.state.groupOf(lease)?.drained === null)
      assert.equal(settled.retryInMs, 0, `${attemptId} ended at a learned cap and is not requested again`);
    this.#account(attemptId, lent, outcome, settled);
  }

  /** Runs everything to its end: answers arrive, time passes, lanes are ample. Throws if it does not end. */
  finish(answer: PlannedOutcome): void {
    this.turn({ do: "pause", paused: false });
    for (const gate of ["wide", "narrow"] as const) this.turn({ do: "gate", gate, mode: "open" });
    for (let round = 0; this.#unfinished; round++) {
      assert(round < 1_000, "the run makes no progress");
      for (let lane = 0; lane < 4; lane++) this.turn({ do: "lane", lane, want: WAITING_FETCHES_DEFAULT });
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
      case "worker":
        return this.#offerOfWorker(step.pick, step.want);
      case "settle": {
        const attemptId = picked([...this.books.lent.keys()], step.pick);
        return attemptId === null ? undefined : this.settle(attemptId, step.outcome);
      }
      case "settle_again": {
        const attemptId = picked(this.books.ended, step.pick);
        const failed: Outcome = {
          kind: "failure",
          class: "unknown",
          reason: WHY,
          answered: true,
          retryAfterMs: null,
          latencyMs: 1,
        };
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
      case "gate":
        return this.gates.set(step.gate, step.mode);
      case "flush":
        return;
      case "pause":
        state.setPaused(step.paused);
    }
  }

  #open({ calls, concurrency, onError, onLost, deadlineMs }: PlannedGroup): void {
    this.#start(calls, {
      concurrency,
      onLost,
      deadlineMs,
      single: null,
      ...(onError === "abort" && { rules: { onError } }),
    });
  }

  #single({ call, onLost }: Extract<Step, { do: "single" }>): void {
    const { position } = this.state.window.join(this.nowMs);
    this.#start([call], { onLost, concurrency: 1, single: position });
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
    const target = RESOLVED[MODELS[call.model] ?? ""];
    if (target === undefined) return;
    const callId = `call-${this.#nextCall++}`;
    const asked = { callId, attempt: 1, facts: factsOf(call), target, onLost };
    this.#enqueue({ ...asked, parallelGroupId: null }, delayMs);
  }

  #enqueue(
    call: Pick<SingleCall, "callId" | "attempt" | "facts" | "target" | "onLost" | "position"> & {
      parallelGroupId: string | null;
    },
    delayMs: number,
  ): void {
    this.calls.set(call.callId, { attempt: call.attempt });
    enqueueCall(this.state, { ...call, deadlineMs: null }, delayMs, this.nowMs);
  }

  /** Cancels a group: its attempts in flight are given up, and exactly those are noted for their executors. */
  #cancel(group: Group): void {
    const { seq } = group.header;
    const givenUp = this.books.ofGroup(seq);
    cancelGroup(this.state, group, WHY, this.nowMs);
    assert(group.done, "a cancelled group has ended");
    const aborted = this.state.givenUp.takeOfLanes();
    const ofWorker = this.state.givenUp.takeOfWorker(workerOf(seq));
    if (ofWorker.length > 0) aborted.set(workerOf(seq), ofWorker);
    assert.deepEqual([...aborted.values()].flat().sort(), givenUp.map(([id]) => id).sort());
    for (const [id, lent] of givenUp) {
      const { executor } = lent.assignment;
      assert(aborted.get(executor ?? -1)?.includes(id), `the executor of ${id} is notified`);
      this.#account(id, lent, null, null);
    }
  }

  #withdraw(pick: number): void {
    const callId = picked([...this.calls.keys()], pick);
    if (callId === null) return;
    if (!endCall(this.state, callId, WHY, this.nowMs)) throw new Error(`${callId} waits but cannot be withdrawn`);
    if (endCall(this.state, callId, WHY, this.nowMs)) throw new Error(`${callId} was withdrawn twice`);
    this.calls.delete(callId);
    this.books.callsEnded.add(callId);
  }

  #offer(lane: number, want: number): void {
    const held = this.state.shards.get(lane)?.leases.size ?? 0;
    if (held + want <= WAITING_FETCHES_DEFAULT) this.#waiting.set(lane, want);
  }

  #offerOfWorker(pick: number, want: number): void {
    const seq = picked([...this.state.groups.keys()], pick);
    if (seq !== null) this.#waiting.set(workerOf(seq), want);
  }

  #expire(): void {
    const over = [...this.books.lent].filter(
      ([id]) => (this.state.attempts.get(id)?.lease.expiresAtMs ?? 0) <= this.nowMs,
    );
    const count = expireLeases(this.state, this.nowMs);
    if (count !== over.length) throw new Error(`${count} leases expired, ${over.length} were due`);
    for (const [id, lent] of over) {
      const { lease } = lent.assignment;
      if (lease.slotId !== null && failsIfLost(this.state, lent)) {
        const group = this.state.groupOf(lease);
        assert.equal(group?.stateOf(indexOf(lease.slotId)), "failed", `${id} is retried against its rule`);
      }
      this.#account(id, lent, null, null);
    }
  }

  #finishTurn(flush: boolean): Reason[] {
    const { state, nowMs } = this;
    this.gates.reply(state, nowMs);
    state.emitWindows(nowMs);
    for (const { call, reason } of expireQueued(state, this.#waitingFor, nowMs)) this.#endAtGate(call, reason);
    const { assignments, refused, waitingFor } = dispatch(state, new Map(this.#waiting), nowMs);
    this.#waitingFor = waitingFor;
    if (assignments.length > 0) mustFit(state.ledger);
    this.rows.commit(state, nowMs, flush);
    this.#pages.stored();
    for (const assignment of assignments) {
      const { callId } = this.books.lend(assignment);
      if (callId !== null && !this.calls.delete(callId)) throw new Error(`${callId} started but did not wait`);
    }
    for (const assignment of assignments) if (assignment.executor !== null) this.#waiting.delete(assignment.executor);
    for (const { callId } of [...refused, ...state.takeSharedOutcomes()].map(({ call }) => call)) {
      if (!this.calls.delete(callId)) throw new Error(`${callId} ended but did not wait`);
      this.books.callsEnded.add(callId);
    }
    this.gates.turned(state, assignments, nowMs);
    return refused.map(({ reason }) => reason);
  }

  /** No single call has a deadline: one ends in the queue only because its gate lets nothing start. */
  #endAtGate({ callId, target }: SingleCall, reason: Reason): void {
    assert(["upstream_error", "upstream_rate_limited"].includes(reason.reason), `${callId} ends as ${reason.reason}`);
    assert(!this.state.upstreams.mayStart(target.gate, this.nowMs), `${callId} ends although it may start`);
    if (!this.calls.delete(callId)) throw new Error(`${callId} ended but did not wait`);
    this.books.callsEnded.add(callId);
  }

  /** Enters an attempt's end in the books; `settled` null = its lease expired. */
  #account(attemptId: string, lent: Lent, outcome: Outcome | null, settled: Settled | null): void {
    this.books.enter(attemptId, lent, outcome);
    if (settled === null || lent.assignment.executor !== null) return;
    const { callId, facts, target, attempt, onLost } = lent.assignment.call;
    if (settled.retryInMs === null) {
      this.books.callsEnded.add(callId);
      return;
    }
    // Its client is there, and its Worker requests the retry.
    const { parallelGroupId, retryInMs, position } = settled;
    const tried = position === undefined ? {} : { position };
    this.#enqueue({ callId, attempt: attempt + 1, facts, target, onLost, parallelGroupId, ...tried }, retryInMs);
  }

  /** A new instance on the same rows: queued single calls, waiting lanes and an uncommitted turn are lost. */
  #crash(inTurn: boolean): void {
    const before = snapshotOf(this.state);
    if (inTurn) dispatch(this.state, new Map([[0, WAITING_FETCHES_DEFAULT]]), this.nowMs);
    this.#waiting.clear();
    this.gates.forget();
    this.calls.clear();
    this.#waitingFor = null;
    this.#pages = this.#newPages();
    this.state = this.rows.rebuild(this.#settings, { ...this.#deps, targetOfLease }, this.nowMs);
    assert.deepEqual(snapshotOf(this.state), before, "the rows restore the state");
    endWindows(this.state, this.nowMs);
    this.rows.commit(this.state, this.nowMs, false);
    teachCaps(this.state);
  }

  #newPages(): PageCache {
    return new PageCache(
      (slotId) => this.rows.pageOf(slotId),
      (seq) => this.rows.models(seq),
    );
  }
}

/** Makes an engine learn low caps: a history has too few answers of a model for that. */
function teachCaps({ learnedCaps }: EngineState): void {
  for (const target of LEASED) {
    const lease = { target, capTokens: null, capKind: "default" } as const;
    for (let at = 0; at < LEARNED_ANSWERS_MIN; at++) learnedCaps.learn(success({ completionTokens: 10 }), lease);
  }
}

const WHY: Reason = { reason: "cancelled", message: "by the test" };
