/**
 * A run's engine, a gate and a provider with a fake clock: how often the run exchanges with its gate, and how long its object
 * cannot sleep. What the object does around the engine is its simplest form: turns, a timer for what is due soon, an alarm.
 */
import type { Outcome } from "../../src/call.ts";
import { expireQueued } from "../../src/run/steps/deadline.ts";
import { nextReadyMs } from "../../src/run/steps/next-ready.ts";
import { settle } from "../../src/run/steps/settle.ts";
import { dueExchanges, dueLeaves, granted, sampled } from "../../src/run/steps/exchange.ts";
import { Gate } from "../../src/gate/gate.ts";
import { EMPTY_MEMORY } from "../../src/gate/memory.ts";
import type { GateGrant } from "../../src/gate/wire.ts";
import { TIMER_MS_MAX } from "../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "./engine.ts";
import type { Provider } from "./gate-providers.ts";

/** Time of a message between two objects, ms. */
const RPC_MS = 5;
/** Time without a request after which Cloudflare takes an object out of memory, ms. */
const IDLE_OBJECT_MS = 10_000;
/** How long an event keeps an object awake, as in test/objects/cost/counted.ts. */
const EVENT_MS = 13;
/** Tokens of a call, as the provider counts them. */
const CALL = { tokens: 100, inputTokens: 50, outputTokens: 50 };

export type SleeperPlan = {
  provider: Provider;
  calls: number;
  /** Duration of each call, ms. */
  latencyMs: number;
  /** Attempts that the run may have in flight; absent = 64. */
  width?: number;
  /** The calls are single ones that arrive at once; absent = they are those of a group. None of them may be rejected. */
  areSingle?: true;
  /** When the group's slots must have ended, ms; absent = whenever. */
  deadlineMs?: number;
  /** A grant as the gate's version of another time gives it; absent = as this one does. */
  asGranted?: (grant: GateGrant) => GateGrant;
};

type Event = { atMs: number; run: () => void };

export class Sleeper {
  gate = new Gate({ adaptive: { mode: "aimd" }, maxInFlight: 512 }, 1, EMPTY_MEMORY, 0);
  nowMs = 0;
  exchanges = 0;
  alarms = 0;
  /** For how long the run's object could not sleep, ms. */
  awakeMs = 0;
  /** When each call has started. */
  readonly startedMs: number[] = [];
  rejected = 0;
  readonly #plan: SleeperPlan;
  readonly #engine: TestEngine;
  #completed = 0;
  #expected: number;
  #epoch = 1;
  #events: Event[] = [];
  #wake: Event | null = null;
  #hasTimer = false;
  #pending = 0;

  constructor(plan: SleeperPlan) {
    this.#plan = plan;
    this.#expected = plan.calls;
    const { calls, width = 64, deadlineMs = null, areSingle = false } = plan;
    this.#engine = new TestEngine({ hasGates: true, width, targets: [makeTarget()], random: () => 0.5 });
    if (areSingle) for (let at = 0; at < calls; at++) this.#engine.call(`call-${at}`, 0);
    else this.#engine.open(alike(calls), { deadlineMs });
  }

  get completed(): number {
    return this.#completed;
  }

  /** Runs until every call has ended, or until a time. */
  runUntil(untilMs: number): void {
    this.#turn();
    this.#runUntil(untilMs);
  }

  /**
   * Lets the run be silent, and then opens a group. A gate that nobody has called for ten seconds is no longer in memory. Returns
   * how long the first answer took, ms.
   */
  burst(calls: number, silentMs: number): number {
    const silentUntilMs = this.nowMs + silentMs;
    this.#expected = Infinity;
    this.#runUntil(silentUntilMs);
    this.nowMs = silentUntilMs;
    if (silentMs >= IDLE_OBJECT_MS) {
      this.#epoch += 1;
      const memory = structuredClone(this.gate.memory());
      this.gate = new Gate({ adaptive: { mode: "aimd" }, maxInFlight: 512 }, this.#epoch, memory, this.nowMs);
    }
    this.#engine.open(alike(calls));
    this.#turn();
    this.#expected = this.#completed + 1;
    this.#runUntil(Infinity);
    const firstMs = this.nowMs - silentUntilMs;
    this.#expected = this.#completed + calls - 1;
    this.#runUntil(Infinity);
    return firstMs;
  }

  #runUntil(untilMs: number): void {
    while (this.#completed < this.#expected) {
      this.#events.sort((a, b) => a.atMs - b.atMs);
      const [event] = this.#events;
      if (event === undefined || event.atMs > untilMs) return;
      this.#events.shift();
      const passedMs = event.atMs - this.nowMs;
      this.awakeMs += this.#hasTimer || this.#pending > 0 ? passedMs : Math.min(EVENT_MS, passedMs);
      this.nowMs = event.atMs;
      event.run();
    }
  }

  #at(atMs: number, run: () => void): Event {
    const event = { atMs, run };
    this.#events.push(event);
    return event;
  }

  /** A turn of the run's object. */
  #turn(): void {
    const { state } = this.#engine;
    state.emitWindows(this.nowMs);
    expireQueued(state, null, this.nowMs);
    for (const { lease } of this.#engine.turn([512], this.nowMs).assignments) this.#start(lease.attemptId);
    const who = { run: "run", instance: "i", weight: 1 };
    for (const { last } of dueLeaves(state, who, this.nowMs))
      this.#at(this.nowMs + RPC_MS, () => this.gate.leave(last.run, last.number, last, this.nowMs));
    for (const { gate, report } of dueExchanges(state, who, this.nowMs)) {
      this.exchanges += 1;
      this.#pending += 1;
      this.#at(this.nowMs + RPC_MS, () => {
        const grant = this.gate.exchange(structuredClone(report), this.nowMs);
        this.#at(this.nowMs + RPC_MS, () => {
          this.#pending -= 1;
          granted(state, gate, this.#plan.asGranted?.(grant) ?? grant, this.nowMs);
          this.#turn();
        });
      });
    }
    this.#sleep(nextReadyMs(state, this.nowMs));
  }

  #sleep(atMs: number | null): void {
    this.#events = this.#events.filter((event) => event !== this.#wake);
    this.#wake = null;
    this.#hasTimer = atMs !== null && atMs <= this.nowMs + TIMER_MS_MAX;
    if (atMs === null) return;
    const isAlarm = !this.#hasTimer;
    this.#wake = this.#at(Math.max(atMs, this.nowMs), () => {
      if (isAlarm) this.alarms += 1;
      this.#turn();
    });
  }

  #start(attemptId: string): void {
    const { provider, latencyMs } = this.#plan;
    this.startedMs.push(this.nowMs);
    const call = { ...CALL, latencyMs };
    const answer = provider.send(call, this.nowMs);
    if (answer.status !== 200) this.rejected += 1;
    this.#at(this.nowMs + answer.latencyMs, () => {
      const { state } = this.#engine;
      if (answer.sample !== null) sampled(state, { acme: { ...answer.sample, ageMs: answer.latencyMs } }, this.nowMs);
      if (answer.status === 200) {
        provider.ended(call, this.nowMs);
        this.#completed += 1;
      }
      const ended: Outcome = answer.status === 200 ? success({}, latencyMs) : failure("rate_limited", answer.hintMs);
      settle(state, attemptId, ended, this.nowMs);
      this.#turn();
    });
  }
}
