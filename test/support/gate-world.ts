/**
 * A simulation of runs, a gate and a provider, with a fake clock: what the run's side of a gate does, in its simplest form,
 * with exchanges that take time and may be lost.
 */
import { Newcomers, type Newcomer } from "../../src/run/gates/newcomers.ts";
import { LatencyChanges, lineOf } from "../../src/run/gates/latency-changes.ts";
import { Gate } from "../../src/gate/gate.ts";
import { EMPTY_MEMORY, type GateMemory } from "../../src/gate/memory.ts";
import type { Adaptive } from "../../src/gate/settings.ts";
import type { GateFailure, GateGrant, GateReport, RateSample, UsedTokens, WorkClass } from "../../src/gate/wire.ts";
import type { Provider, SentCall } from "./gate-providers.ts";

/** Attempts that a run may have in flight before its first grant. */
const FREE_ALLOWANCE = 8;
const NO_CLASS = { waiting: 0, tokensPerCall: 0 };

export type RunPlan = {
  id: string;
  calls: number;
  /** Absent = `m`. */
  model?: string;
  workClass?: WorkClass;
  weight?: number;
  width?: number;
  startMs?: number;
  /** Time between two calls that a client makes one after the other; absent = all calls wait from the start. */
  everyMs?: number;
  tokens?: number;
  inputTokens?: number;
  outputTokens?: number;
  /** The prompt of the next call, in tokens, where they differ; absent = `inputTokens`. */
  promptOf?: () => number;
  /** What the run believes that a call's tokens are; absent = the truth. */
  believedTokens?: number;
  /** The part of them that is the prompt; absent = the true prompt, or half. */
  believedInputTokens?: number;
  latencyMs?: () => number;
};

export type WorldOptions = {
  provider: Provider;
  runs: readonly RunPlan[];
  seed?: number;
  rpcMs?: number;
  adaptive?: Adaptive;
  /** Share of the replies of the gate that are lost. */
  lostReplies?: number;
  /** Whether all runs are in one isolate, and share what they begin with; absent = each begins as if it were alone. */
  shareIsolate?: true;
};

type Slot = { attempts: number; readyMs: number; sinceMs: number };

export class SimulatedRun {
  readonly plan: RunPlan;
  readonly waiting: Slot[] = [];
  grant: GateGrant | null = null;
  grantedMs = 0;
  grantBase = { requests: 0, tokens: 0 };
  inFlight = 0;
  started = { requests: 0, tokens: 0 };
  startedMs = 0;
  succeeded = 0;
  latency = new LatencyChanges();
  used: UsedTokens | undefined;
  sample: { sample: RateSample; sentMs: number } | null = null;
  failures: GateFailure[] = [];
  recovered = false;
  stopKnownMs: number | null = null;
  number = 0;
  readonly newcomer: Newcomer | null;
  isExchanging = false;
  nextExchangeMs = 0;
  /** When each call has ended, and how long it had waited. */
  readonly done: { atMs: number; waitedMs: number }[] = [];

  constructor(plan: RunPlan, newcomer: Newcomer | null) {
    this.plan = plan;
    this.newcomer = newcomer;
  }

  get tokensPerCall(): number {
    return this.plan.believedTokens ?? this.plan.tokens ?? 100;
  }
}

export class World {
  nowMs = 0;
  gate: Gate;
  readonly runs: SimulatedRun[];
  /** When each request was sent, and what came of it. */
  readonly sent: { atMs: number; status: number }[] = [];
  readonly #options: WorldOptions;
  readonly #events: { atMs: number; run: () => void }[] = [];
  #epoch = 1;
  #random: number;
  /** Exchanges of all runs so far. */
  exchanges = 0;
  #unfinished: number;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#random = options.seed ?? 1;
    this.gate = this.#newGate(EMPTY_MEMORY);
    const isolate = options.shareIsolate === true ? new Newcomers() : null;
    this.runs = options.runs.map((plan) => new SimulatedRun(plan, isolate?.at("gate") ?? null));
    this.#unfinished = this.runs.length;
    for (const run of this.runs) this.#admit(run);
  }

  /** Uniform in [0, 1), the same for a seed. */
  random(): number {
    this.#random = (this.#random * 48_271) % 2_147_483_647;
    return this.#random / 2_147_483_647;
  }

  at(atMs: number, run: () => void): void {
    // The next event is the last one; of those at the same time, the one that was set first.
    let [from, to] = [0, this.#events.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#events[middle]?.atMs ?? 0) > atMs) from = middle + 1;
      else to = middle;
    }
    this.#events.splice(from, 0, { atMs, run });
  }

  /** Ends the gate's object; the next exchange meets another one, with what was stored. */
  restartGate(memory: GateMemory = this.gate.memory()): void {
    this.#epoch += 1;
    this.gate = this.#newGate(structuredClone(memory));
  }

  /** Runs until all calls are done, or until a time. */
  runUntil(untilMs: number, everyMs?: (nowMs: number) => void): void {
    if (everyMs !== undefined) for (let atMs = 0; atMs < untilMs; atMs += 50) this.at(atMs, () => everyMs(this.nowMs));
    for (;;) {
      const event = this.#events.at(-1);
      if (event === undefined || event.atMs > untilMs) break;
      this.#events.pop();
      this.nowMs = Math.max(this.nowMs, event.atMs);
      event.run();
      if (this.isDone) return;
    }
    this.nowMs = untilMs;
  }

  get isDone(): boolean {
    return this.#unfinished === 0;
  }

  doneBy(atMs: number, fromMs = 0): number {
    return this.runs.reduce(
      (sum, run) => sum + run.done.filter((one) => one.atMs > fromMs && one.atMs <= atMs).length,
      0,
    );
  }

  rejectedAfter(fromMs: number): { rejected: number; sent: number } {
    const after = this.sent.filter(({ atMs }) => atMs > fromMs);
    return { rejected: after.filter(({ status }) => status !== 200).length, sent: after.length };
  }

  #newGate(memory: GateMemory): Gate {
    const { adaptive = { mode: "aimd" } } = this.#options;
    return new Gate({ adaptive, maxInFlight: 512 }, this.#epoch, memory, this.nowMs);
  }

  #admit(run: SimulatedRun): void {
    const { calls, startMs = 0, everyMs } = run.plan;
    if (everyMs === undefined) {
      this.at(startMs, () => {
        for (let call = 0; call < calls; call++) run.waiting.push({ attempts: 0, readyMs: startMs, sinceMs: startMs });
        this.#dispatch(run);
      });
      return;
    }
    for (let call = 0; call < calls; call++) {
      const atMs = startMs + call * everyMs;
      this.at(atMs, () => {
        run.waiting.push({ attempts: 0, readyMs: atMs, sinceMs: atMs });
        this.#dispatch(run);
      });
    }
  }

  // ---- a run ----

  #mayStart(run: SimulatedRun): boolean {
    const { grant, inFlight, plan } = run;
    if (inFlight >= (plan.width ?? 64)) return false;
    if (grant === null) return inFlight < Math.min(FREE_ALLOWANCE, run.newcomer?.permitsAt(this.nowMs) ?? Infinity);
    const ageMs = this.nowMs - run.grantedMs;
    if (ageMs >= grant.ttlMs || ageMs < grant.waitMs) return false;
    if (grant.permits !== null && inFlight >= grant.permits) return false;
    const requests = run.started.requests - run.grantBase.requests;
    const tokens = run.started.tokens - run.grantBase.tokens;
    return (grant.requests === null || requests < grant.requests) && (grant.tokens === null || tokens < grant.tokens);
  }

  #dispatch(run: SimulatedRun): void {
    for (;;) {
      const index = run.waiting.findIndex(({ readyMs }) => readyMs <= this.nowMs);
      if (index === -1) break;
      if (!this.#mayStart(run)) {
        if (run.inFlight < (run.plan.width ?? 64)) this.#wantExchange(run);
        break;
      }
      const [slot] = run.waiting.splice(index, 1);
      if (slot !== undefined) this.#start(run, slot);
    }
    if (run.grant === null) this.#exchange(run);
    this.#maybeExchange(run);
  }

  #start(run: SimulatedRun, slot: Slot): void {
    const { plan } = run;
    const tokens = plan.tokens ?? 100;
    const inputTokens = plan.promptOf?.() ?? plan.inputTokens ?? tokens / 2;
    const call: SentCall = {
      tokens,
      inputTokens,
      outputTokens: plan.outputTokens ?? tokens - inputTokens,
      latencyMs: (plan.latencyMs ?? (() => 200 + 200 * this.random()))(),
    };
    run.inFlight += 1;
    if (run.grant === null) run.newcomer?.started(this.nowMs);
    run.startedMs = this.nowMs;
    run.started = { requests: run.started.requests + 1, tokens: run.started.tokens + run.tokensPerCall };
    const sentMs = this.nowMs;
    const wayMs = 5;
    this.at(sentMs + wayMs, () => {
      const answer = this.#options.provider.send(call, this.nowMs);
      this.sent.push({ atMs: sentMs, status: answer.status });
      this.at(this.nowMs + answer.latencyMs, () => {
        if (answer.status === 200) this.#options.provider.ended(call, this.nowMs);
        run.inFlight -= 1;
        if (run.grant === null) run.newcomer?.ended();
        if (answer.sample !== null && sentMs >= (run.sample?.sentMs ?? -1))
          run.sample = { sample: answer.sample, sentMs };
        if (answer.status === 200) {
          run.succeeded += 1;
          const countedInput = plan.inputTokens ?? run.tokensPerCall / 2;
          run.used ??= { input: 0, output: 0, countedInput: 0, countedOutput: 0 };
          run.used.input += call.inputTokens;
          run.used.output += call.outputTokens;
          run.used.countedInput += plan.believedInputTokens ?? countedInput;
          run.used.countedOutput += run.tokensPerCall - (plan.believedInputTokens ?? countedInput);
          const { ttfbMs } = answer;
          const ttfb = ttfbMs === null ? {} : { ttfb: { ms: ttfbMs, line: lineOf(call.inputTokens, null) } };
          run.latency.answered({ model: plan.model ?? "m", latencyMs: this.nowMs - sentMs, ...ttfb });
          if (run.stopKnownMs !== null && sentMs >= run.stopKnownMs) run.recovered = true;
          run.done.push({ atMs: this.nowMs, waitedMs: sentMs - slot.sinceMs });
          if (run.done.length === plan.calls) {
            this.#unfinished -= 1;
            this.gate.leave(plan.id, run.number + 1, this.#report(run), this.nowMs);
          }
        } else this.#failed(run, slot, answer.status, answer.hintMs);
        this.#dispatch(run);
      });
    });
  }

  #failed(run: SimulatedRun, slot: Slot, status: number, hintMs: number | null): void {
    const isStop = status === 402;
    const failure = isStop ? "stopped" : status === 503 ? "overloaded" : "rate_limited";
    const known = run.failures.find((one) => one.class === failure);
    if (known !== undefined) {
      known.count += 1;
      known.hintMs = hintMs === null ? known.hintMs : Math.max(known.hintMs ?? 0, hintMs);
    } else {
      const stop = isStop ? "insufficient_quota" : null;
      run.failures.push({ class: failure, stop, hintMs, count: 1, ageMs: 0, message: null });
    }
    if (!isStop) slot.attempts += 1;
    const backoffMs = isStop ? 0 : (hintMs ?? this.random() * 800 * 2 ** Math.min(4, slot.attempts - 1));
    slot.readyMs = this.nowMs + backoffMs;
    run.waiting.unshift(slot);
    this.at(slot.readyMs, () => this.#dispatch(run));
    this.#exchange(run);
  }

  #wantExchange(run: SimulatedRun): void {
    const { grant } = run;
    // It had more than enough: it begins to wait now. Otherwise it comes back when it was told to.
    if (grant !== null && this.nowMs - run.grantedMs >= Math.min(grant.nextInMs, 20) && !run.isExchanging) {
      const isDue = this.nowMs >= run.nextExchangeMs;
      const hadAll = grant.nextInMs > 1_000;
      if (isDue || hadAll) this.#exchange(run);
    }
  }

  #maybeExchange(run: SimulatedRun): void {
    const { grant } = run;
    if (grant === null || run.isExchanging) return;
    if (this.nowMs >= run.nextExchangeMs && (run.waiting.length > 0 || run.inFlight > 0)) return this.#exchange(run);
    // Of what was short there is no more before the time that the gate has named.
    if (grant.reason !== null) return;
    const used = run.started.requests - run.grantBase.requests;
    if (grant.requests !== null && grant.requests >= 4 && used * 2 >= grant.requests && grant.nextInMs > 200)
      this.#exchange(run);
  }

  #exchange(run: SimulatedRun): void {
    if (run.isExchanging) return;
    run.isExchanging = true;
    const report = this.#report(run);
    const rpcMs = this.#options.rpcMs ?? 5;
    this.at(this.nowMs + rpcMs, () => {
      this.exchanges += 1;
      const grant = this.gate.exchange(report, this.nowMs);
      const isLost = this.random() < (this.#options.lostReplies ?? 0);
      this.at(this.nowMs + rpcMs, () => {
        run.isExchanging = false;
        if (isLost) return this.at(this.nowMs + 100, () => this.#exchange(run));
        this.#granted(run, grant, report);
      });
    });
  }

  #granted(run: SimulatedRun, grant: GateGrant, report: GateReport): void {
    run.grant = grant;
    run.newcomer?.replied(grant, this.nowMs);
    run.grantedMs = this.nowMs;
    run.grantBase = report.started;
    if (grant.class !== "stopped") run.stopKnownMs = null;
    else run.stopKnownMs ??= this.nowMs;
    run.nextExchangeMs = this.nowMs + grant.nextInMs;
    // What waits for the gate wakes the run.
    this.at(this.nowMs + Math.max(grant.nextInMs, grant.wakeInMs ?? 0), () => {
      const isHeldUp = run.waiting.length > 0 && run.inFlight < (run.plan.width ?? 64);
      if (run.grant === grant && isHeldUp) this.#exchange(run);
    });
    if (run.failures.length > 0) this.#exchange(run);
    this.#dispatch(run);
  }

  #report(run: SimulatedRun): GateReport {
    run.number += 1;
    const { plan } = run;
    const waiting = run.waiting.filter(({ readyMs }) => readyMs <= this.nowMs).length;
    const demand = {
      waiting,
      tokensPerCall: run.tokensPerCall,
      inputTokensPerCall: plan.believedInputTokens ?? plan.inputTokens ?? run.tokensPerCall / 2,
    };
    const isValid = run.grant !== null && this.nowMs - run.grantedMs < run.grant.ttlMs;
    const report: GateReport = {
      run: plan.id,
      instance: "1",
      number: run.number,
      epoch: run.grant?.epoch ?? 0,
      weight: plan.weight ?? 1,
      classes: { interactive: NO_CLASS, standard: NO_CLASS, batch: NO_CLASS, [plan.workClass ?? "standard"]: demand },
      inFlight: run.inFlight,
      permits: isValid ? (run.grant?.permits ?? null) : 0,
      started: run.started,
      sinceStartMs: this.nowMs - run.startedMs,
      succeeded: run.succeeded,
      latency: run.latency.reported,
      samples: run.sample === null ? [] : [{ ...run.sample.sample, ageMs: this.nowMs - run.sample.sentMs }],
      failures: run.failures,
      recovered: run.recovered,
      ...(run.used === undefined ? {} : { used: run.used }),
    };
    Object.assign(run, {
      latency: new LatencyChanges(),
      sample: null,
      failures: [],
      recovered: false,
      used: undefined,
    });
    return report;
  }
}
