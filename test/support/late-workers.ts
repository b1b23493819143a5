/**
 * Single calls of a run and their Workers, on a real engine with virtual time. A Worker may be late with every step, lose a reply or
 * its socket, die, or lose its client; the run may look at any moment in between.
 */
import { abandon, acquire, acquireMany, settleSingle, withdraw } from "../../durable-objects/run/calls.ts";
import { sendToCalls } from "../../durable-objects/run/executors/replies.ts";
import { WaitingCalls } from "../../durable-objects/run/memory/waiters.ts";
import type { AcquireReply, AcquireRequest } from "../../src/objects/methods/calls.ts";
import type { RunEvent } from "../../src/run/log.ts";
import { dispatch } from "../../src/run/steps/dispatch.ts";
import { expireQueued } from "../../src/run/steps/deadline.ts";
import { isAside } from "../../src/run/steps/enqueue.ts";
import { putBack } from "../../src/run/steps/put-back.ts";
import { expireLeases } from "../../src/run/steps/settle.ts";
import type { Outcome } from "../../src/call.ts";
import { ABANDONED_MS, SWEEP_MS } from "../../src/limits.ts";
import { failure, makeFacts, makeTarget, seeded, success, TestEngine } from "./engine.ts";

/** How a Worker's call has ended, as its client sees it. */
export type Seen = Exclude<AcquireReply["ok"], "wait" | true> | "answered" | "failed";

type Worker = {
  readonly callId: string;
  readonly request: AcquireRequest;
  attempt: number;
  /** It makes and hears nothing any more. */
  isDead: boolean;
  hasLeft: boolean;
  /** What it waits for: the reply to its request of this number, or a message at its socket; null = neither. */
  waitsFor: number | "socket" | null;
  asked: number;
  seen: Seen | null;
};

const STOPPED: Outcome = {
  kind: "failure",
  class: "unknown",
  reason: { reason: "cancelled", message: "stopped" },
  answered: false,
  retryAfterMs: null,
  latencyMs: 1,
};

/** Long enough for everything to end: the leases of dead Workers, too. */
const END_MS = 240_000;

export class LateWorkers {
  readonly engine: TestEngine;
  readonly workers: Worker[] = [];
  readonly events: RunEvent[] = [];
  readonly #waitingCalls = new WaitingCalls((callId, reply) => void this.#signals.push({ callId, reply }));
  readonly #run;
  readonly #random: () => number;
  readonly #steps: { atMs: number; act: () => void }[] = [];
  readonly #sockets = new Set<string>();
  #signals: { callId: string; reply: AcquireReply }[] = [];
  #nowMs = 0;

  constructor(seed: number) {
    this.#random = seeded(seed);
    const width = 1 + Math.floor(this.#random() * 3);
    const isAway = (callId: string): boolean => this.#waitingCalls.isAway(callId);
    this.engine = new TestEngine({ width, limits: { usd: 1_000_000 }, isAway, random: this.#random });
    const targets = { resolve: () => makeTarget() };
    const waitingCalls = this.#waitingCalls;
    this.#run = { engine: this.engine.state, waitingCalls, targets, remainingNanoUsd: null, replay: null };
  }

  get waiting(): number {
    return this.#waitingCalls.size;
  }

  /** Calls arrive, and all of it is played to its end. */
  play(calls: number): void {
    for (let at = 0; at < calls; at++) this.#in(this.#upTo(3_000), () => this.#arrive(`c${at}`));
    for (let atMs = SWEEP_MS; atMs < END_MS; atMs += SWEEP_MS) this.#steps.push({ atMs, act: () => this.#sweep() });
    this.#steps.sort((a, b) => a.atMs - b.atMs);
    for (let step = this.#steps.shift(); step !== undefined; step = this.#steps.shift()) {
      this.#nowMs = Math.max(this.#nowMs, step.atMs);
      step.act();
    }
  }

  #arrive(callId: string): void {
    const dedupeKey = this.#pick([undefined, "x", "x", "y"]);
    const facts = makeFacts({ maxTokens: 40, ...(dedupeKey === undefined ? {} : { dedupeKey }) });
    const deadlineMs = this.#pick([null, null, 20 + this.#upTo(400), this.#upTo(5_000)]);
    const request = {
      callId,
      attempt: 1,
      facts,
      delayMs: 0,
      deadlineMs,
      onLost: "retry",
      parallelGroupId: null,
    } as const;
    const plain = { attempt: 1, isDead: false, hasLeft: false, waitsFor: null, asked: 0, seen: null };
    const worker: Worker = { callId, request, ...plain };
    this.workers.push(worker);
    this.#ask(worker);
    if (this.#chance(0.1)) this.#in(this.#upTo(8_000), () => this.#die(worker));
    if (this.#chance(0.15)) this.#in(this.#upTo(8_000), () => this.#leave(worker));
  }

  /** The Worker requests its permit, which takes its time; so does the reply, and either may be lost. */
  #ask(worker: Worker, delayMs = 0): void {
    if (worker.isDead || worker.hasLeft) return;
    const number = ++worker.asked;
    const isFirst = number === 1;
    worker.waitsFor = number;
    const reply = (acquired: AcquireReply): void => {
      if (this.#chance(0.15)) return;
      this.#in(this.#late(), () => {
        if (worker.waitsFor === number) this.#got(worker, acquired);
      });
    };
    const request = { ...worker.request, attempt: worker.attempt, delayMs };
    if (!this.#chance(0.1))
      this.#in(this.#late(), () => {
        if (isFirst)
          acquireMany(this.#run, [request], ([acquired]) => acquired !== undefined && reply(acquired), this.#nowMs);
        else acquire(this.#run, request, reply, this.#nowMs);
        this.#turn();
      });
    // Whatever is lost, it asks once more.
    this.#in(2_000 + this.#upTo(3_000), () => {
      if (worker.waitsFor === number) this.#ask(worker, 0);
    });
  }

  #got(worker: Worker, acquired: AcquireReply): void {
    worker.waitsFor = null;
    if (worker.isDead || worker.hasLeft) return;
    if (acquired.ok === "wait") return this.#waitOn(worker);
    if (acquired.ok !== true) {
      worker.seen = acquired.ok;
      return;
    }
    this.#in(this.#upTo(3_000), () => this.#ended(worker));
  }

  /** Between two requests: it opens a socket, or is away for a while. */
  #waitOn(worker: Worker): void {
    if (this.#chance(0.5)) return this.#in(this.#late(), () => this.#ask(worker));
    worker.waitsFor = "socket";
    this.#in(this.#late(), () => {
      if (worker.isDead || worker.hasLeft || worker.waitsFor !== "socket") return;
      this.#sockets.add(worker.callId);
      const isKnown = this.#waitingCalls.socketOpened(worker.callId);
      if (!isKnown || isAside(this.engine.state, worker.callId)) return this.#ask(worker);
      if (this.#chance(0.4)) this.#in(this.#upTo(2_000), () => this.#breakSocket(worker));
    });
  }

  #breakSocket(worker: Worker): void {
    if (!this.#sockets.delete(worker.callId)) return;
    // The object need not hear of a Worker that opens another one.
    if (worker.isDead || worker.hasLeft || this.#chance(0.8)) {
      this.#waitingCalls.socketClosed(worker.callId, this.#nowMs);
      this.#turn();
    }
    this.#in(this.#late(), () => {
      if (worker.waitsFor === "socket") this.#ask(worker);
    });
  }

  #ended(worker: Worker): void {
    if (worker.isDead) return;
    const outcome = worker.hasLeft
      ? STOPPED
      : this.#pick([success(), success(), failure("transient"), failure("rejected")]);
    this.#in(this.#late(), () => {
      const attemptId = `${worker.callId}.${worker.attempt}`;
      const { retryInMs } = settleSingle(this.#run, { attemptId, outcome, stored: null }, this.#nowMs);
      this.#turn();
      if (retryInMs !== null && !worker.hasLeft) {
        worker.attempt += 1;
        this.#ask(worker, retryInMs);
      } else worker.seen = outcome.kind === "success" ? "answered" : "failed";
    });
  }

  #die(worker: Worker): void {
    worker.isDead = true;
    this.#in(this.#late(), () => this.#breakSocket(worker));
  }

  #leave(worker: Worker): void {
    if (worker.seen !== null || worker.isDead) return;
    worker.hasLeft = true;
    // Its socket closes with its request.
    this.#in(this.#late(), () => this.#breakSocket(worker));
    if (worker.waitsFor === null || this.#chance(0.2)) return;
    this.#in(this.#late(), () => {
      withdraw(this.#run, worker.callId, this.#nowMs);
      this.#turn();
    });
  }

  /** What the run object does as time passes. */
  #sweep(): void {
    abandon(this.#run, this.#waitingCalls.sweep(this.#nowMs), this.#nowMs);
    expireLeases(this.engine.state, this.#nowMs);
    this.#turn();
  }

  /** A turn of the run object, as far as single calls are concerned. */
  #turn(): void {
    const { state } = this.engine;
    const late = expireQueued(state, null, this.#nowMs);
    const dispatched = dispatch(state, new Map(), this.#nowMs);
    dispatched.refused.push(...late);
    sendToCalls(this.#run, dispatched);
    this.#waitingCalls.release(this.#nowMs);
    this.events.push(...(state.log.take()?.events ?? []));
    const signals = this.#signals;
    this.#signals = [];
    for (const { callId, reply } of signals) this.#signal(callId, reply);
  }

  #signal(callId: string, reply: AcquireReply): void {
    const worker = this.workers.find((each) => each.callId === callId);
    if (!this.#sockets.has(callId)) {
      if (reply.ok !== true || !putBack(this.engine.state, callId, this.#nowMs)) return;
      this.#waitingCalls.addAway(callId, this.#nowMs);
      return this.#in(0, () => this.#turn());
    }
    // A socket that breaks may take the message with it.
    if (worker === undefined || this.#chance(0.1))
      return this.#in(this.#late(), () => worker && this.#breakSocket(worker));
    this.#in(this.#late(), () => {
      if (worker.waitsFor !== "socket") return;
      if (reply.ok === "wait") return this.#ask(worker);
      this.#sockets.delete(callId);
      this.#got(worker, reply);
    });
  }

  #in(ms: number, act: () => void): void {
    const atMs = this.#nowMs + ms;
    let at = this.#steps.length;
    while (at > 0 && (this.#steps[at - 1]?.atMs ?? 0) > atMs) at -= 1;
    this.#steps.splice(at, 0, { atMs, act });
  }

  /** Mostly a few ms; sometimes as long as a deadline, and at times longer than a Worker may be away. */
  #late(): number {
    const dice = this.#random();
    if (dice < 0.6) return this.#upTo(20);
    return this.#upTo(dice < 0.95 ? 1_500 : ABANDONED_MS * 1.5);
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #upTo(most: number): number {
    return Math.floor(this.#random() * most);
  }

  #pick<T>(of: readonly [T, ...T[]]): T {
    return of[this.#upTo(of.length)] ?? of[0];
  }
}
