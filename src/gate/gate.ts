/**
 * A gate: what all runs together may start with one key of one upstream. It sees reports and gives grants, never single
 * calls. It has no clock: every method takes the time.
 */
import {
  GATE_ANSWERS_MIN,
  GATE_BUSY_IN_FLIGHT,
  GATE_BUSY_NEXT_MS,
  GATE_FAST_NEXT_MS,
  GATE_LATENCY_DEFAULT_MS,
  GATE_NEXT_MAX_MS,
  GATE_OPEN_NEXT_MS,
  GATE_OPEN_TTL_MS,
  GATE_PACED_MS,
  GATE_PLENTY_SHARE,
  GATE_PUNCTUAL_SLACK_MS,
  GATE_SLEEP_LATENCY_SHARE,
  GATE_SLEEP_MS_MAX,
  GATE_TTL_MS,
  RETRY_AFTER_MAX_MS,
} from "../limits.ts";
import { Latencies } from "./latencies.ts";
import { GateMeters } from "./meters.ts";
import { Pace } from "./pace.ts";
import { Penalty } from "./penalty.ts";
import { permitsOf, heldBy } from "./permits.ts";
import type { GateMemory } from "./memory.ts";
import { outstandingOf, Rates, type Paced, type RateGrant, type WasWaiting } from "./rates.ts";
import { Registry, waitingOf, type News, type Run } from "./registry.ts";
import type { GateSettings } from "./settings.ts";
import { NO_AMOUNT, Started, type Amount } from "./started.ts";
import { Stop } from "./stop.ts";
import { AdaptiveWidth } from "./width.ts";
import {
  WORK_CLASSES,
  type GateClass,
  type GateFailure,
  type GateGrant,
  type GateReason,
  type GateReport,
  type GateStatus,
} from "./wire.ts";

export class Gate {
  readonly #settings: GateSettings;
  readonly #epoch: number;
  /** What attempts have cost, of all runs. */
  readonly meters = new GateMeters();
  /** How long attempts take, of all runs. */
  readonly latencies = new Latencies();
  readonly #registry = new Registry();
  readonly #started: Started;
  readonly #rates = new Rates();
  readonly #width = new AdaptiveWidth();
  readonly #penalty: Penalty | null;
  #pace: Pace | null = null;
  #stop: Stop | null = null;
  /** Nobody starts before, because the provider said so. */
  #waitUntilMs = 0;
  /** Calls have waited for a rate until now: the gate counts as paced for a while longer, so that it does not flicker. */
  #pacedUntilMs = 0;
  #pacedReason: GateReason | null = null;
  /** Until then runs that another instance knew may hold permits that this one does not know of. */
  #unknownUntilMs = 0;
  /** Attempts that have succeeded since this instance began: after a few it is known whether their headers show limits. */
  #answers = 0;
  #latencyMs = GATE_LATENCY_DEFAULT_MS;
  #lastError: { class: GateFailure["class"]; message: string | null; atMs: number } | null = null;

  /** @param epoch Names this instance, over 0. @param memory What an earlier instance stored. */
  constructor(settings: GateSettings, epoch: number, memory: GateMemory, nowMs: number) {
    this.#settings = settings;
    this.#epoch = epoch;
    this.#started = new Started(nowMs);
    this.#penalty = settings.adaptive.mode === "penalty" ? new Penalty(settings.adaptive) : null;
    this.#rates.restore(memory.buckets, nowMs);
    if (memory.stop !== null) this.#stop = new Stop(memory.stop, nowMs);
    // Even if the clock has gone back.
    this.#waitUntilMs = Math.min(memory.waitUntilMs, nowMs + RETRY_AFTER_MAX_MS);
    if (memory.width === null || settings.adaptive.mode !== "aimd") return;
    this.#width.restore(memory.width, nowMs);
    this.#unknownUntilMs = nowMs + GATE_TTL_MS;
  }

  /** Exchanges a report for a grant. */
  exchange(report: GateReport, nowMs: number): GateGrant {
    this.#registry.expire(nowMs);
    const known = this.#registry.get(report.run);
    const wasWaiting = waitingClasses(known, nowMs);
    const sinceMs = known?.seenMs ?? nowMs;
    const news = this.#registry.take(report, nowMs);
    const { run } = news;
    run.outstanding = { ...NO_AMOUNT };
    run.permits = report.permits ?? report.inFlight;
    this.#learn(report, news, sinceMs, nowMs);
    const runs = this.#runs();
    const rejected = news.isNew ? rejectedIn(report) : 0;
    this.#rates.settle(run, { started: news.started.requests, rejected }, runs, nowMs);
    const grant = this.#decide(run, wasWaiting, nowMs);
    this.meters.reportedBy(run.id, nowMs + grant.ttlMs);
    // A run that reports often has enough samples of its own, or soon will have.
    const hasLatencies = report.epoch !== this.#epoch || grant.nextInMs >= GATE_NEXT_MAX_MS;
    return hasLatencies ? { ...grant, ...this.latencies.forGrant } : grant;
  }

  /** The run had nothing waiting or in flight any more after its report of this number: a later one may have overtaken this. */
  leave(run: string, number = Infinity): void {
    if ((this.#registry.get(run)?.number ?? 0) <= number) this.#registry.delete(run);
  }

  /** Ends a stop. False if there was none. */
  resume(): boolean {
    if (this.#stop === null) return false;
    this.#stop = null;
    return true;
  }

  classAt(nowMs: number): GateClass {
    if (this.#stop !== null) return "stopped";
    if (this.#waitUntilMs > nowMs || this.#pacedUntilMs > nowMs) return "paced";
    return this.#permitsAt(nowMs) === null ? "open" : "shrunk";
  }

  /** The runs that use the gate, most urgent first, for a notice that its class has changed. */
  users(): string[] {
    const isUser = (run: Run): boolean => run.inFlight > 0 || waitingOf(run) > 0 || run.outstanding.requests > 0;
    const users = this.#runs().filter(isUser);
    return users
      .toSorted((a, b) => WORK_CLASSES.indexOf(a.workClass) - WORK_CLASSES.indexOf(b.workClass))
      .map(({ id }) => id);
  }

  /** What a run is sent when the class has changed: its grant is over, and it exchanges at once. */
  notice(nowMs: number): GateGrant {
    const nothing = { permits: 0, requests: 0, tokens: 0 };
    return { ...this.#head(nowMs), ...nothing, ttlMs: GATE_TTL_MS, nextInMs: 0 };
  }

  memory(): GateMemory {
    const stop = this.#stop?.stored() ?? null;
    return { stop, width: this.#width.stored(), buckets: this.#rates.stored(), waitUntilMs: this.#waitUntilMs };
  }

  status(nowMs: number): GateStatus {
    this.#registry.expire(nowMs);
    const runs = this.#runs();
    const { class: gateClass, reason, stop } = this.#head(nowMs);
    return {
      epoch: this.#epoch,
      class: gateClass,
      reason,
      width: this.#permitsAt(nowMs),
      inFlight: this.#registry.inFlight,
      permits: this.#permitsAt(nowMs) === null ? null : runs.reduce((sum, run) => sum + heldBy(run), 0),
      buckets: this.#rates.status(nowMs),
      // No call waits for an open gate. Runs seldom report to one, so the queue lengths in their reports are outdated.
      waiting: gateClass === "open" ? 0 : runs.reduce((sum, run) => sum + waitingOf(run), 0),
      runs: this.#registry.size,
      waitMs: Math.max(0, this.#waitUntilMs - nowMs),
      stop: stop === null ? null : { ...stop, nextProbeInMs: this.#stop?.nextProbeInMs(nowMs) ?? 0 },
      lastError: this.#lastErrorAt(nowMs),
      latency: this.latencies.status(),
    };
  }

  #runs(): Run[] {
    return [...this.#registry.all()];
  }

  #permitsAt(nowMs: number): number | null {
    const { adaptive, maxInFlight } = this.#settings;
    if (this.#penalty !== null) return this.#penalty.widthAt(nowMs, maxInFlight);
    return adaptive.mode === "aimd" ? this.#width.permits : null;
  }

  // ---- what a report teaches ----

  #learn(report: GateReport, { started, succeeded, isNew }: News, sinceMs: number, nowMs: number): void {
    this.#started.add(started, sinceMs, Math.max(sinceMs, nowMs - (report.sinceStartMs ?? 0)), nowMs);
    this.#answers += succeeded;
    this.#rates.start(started, nowMs);
    this.#pace?.start(started.requests, nowMs);
    if (!isNew) return;
    if (report.meter !== undefined) this.meters.add(report.meter);
    const { meanMs = this.#latencyMs, models = [] } = report.latency ?? {};
    this.#latencyMs += (meanMs - this.#latencyMs) * LATENCY_GAIN;
    this.latencies.add(models);
    for (const sample of report.samples) this.#rates.follow(sample, this.#started, this.#latencyMs, nowMs);
    if (report.recovered) this.#stop = null;
    this.#width.count(succeeded);
    for (const failure of report.failures) this.#failed(failure, nowMs);
    if (this.#settings.adaptive.mode !== "aimd" || report.failures.some(isRejection)) return;
    this.#width.succeeded({ inFlight: this.#registry.inFlight, count: succeeded, models }, this.#latencyMs, nowMs);
  }

  #failed(failure: GateFailure, nowMs: number): void {
    const atMs = nowMs - Math.max(0, failure.ageMs);
    if (failure.class !== "schema_violation") {
      this.#lastError = { class: failure.class, message: failure.message, atMs };
    }
    if (failure.class === "stopped") return this.#stopped(failure, atMs, nowMs);
    if (failure.hintMs !== null && isRejection(failure)) {
      const untilMs = atMs + Math.min(failure.hintMs, RETRY_AFTER_MAX_MS);
      this.#waitUntilMs = Math.max(this.#waitUntilMs, untilMs);
      if (untilMs > nowMs) this.#rates.rejected(untilMs - nowMs, nowMs);
    }
    this.#penalty?.failed(failure, this.#registry.inFlight + failure.count, nowMs);
    if (this.#settings.adaptive.mode !== "aimd" || !isRejection(failure) || this.#isExplained(failure, nowMs)) return;
    this.#width.rejected(failure.count, this.#registry.inFlight, nowMs, failure.class === "overloaded");
  }

  /** Whether a rejection is one of the rates that the headers show: then they limit what is started, not the width. */
  #isExplained({ class: failure }: GateFailure, nowMs: number): boolean {
    if (failure !== "rate_limited" || !this.#rates.isKnown) return false;
    return this.#rates.leftAt(outstandingOf(this.#runs()), nowMs) < GATE_PLENTY_SHARE;
  }

  #stopped({ stop, message }: GateFailure, atMs: number, nowMs: number): void {
    this.#stop ??= new Stop({ reason: stop ?? "forbidden", message, sinceMs: atMs }, nowMs);
  }

  // ---- what a run may do ----

  #decide(run: Run, wasWaiting: WasWaiting, nowMs: number): GateGrant {
    if (this.#stop !== null) return this.#probe(run, this.#stop, nowMs);
    const runs = this.#runs();
    this.#setPace(nowMs);
    const permits = this.#permitsFor(run, runs, nowMs);
    const waitMs = Math.max(0, this.#waitUntilMs - nowMs);
    const rates: RateGrant =
      waitMs > 0
        ? { amount: { ...NO_AMOUNT }, reason: "requests_per_minute", nextInMs: waitMs, wakeInMs: waitMs, left: 0 }
        : this.#rates.grant(run, wasWaiting, runs, this.#pacedFor(run, permits), nowMs);
    const isShort = permits !== null && permits < run.inFlight + waitingOf(run);
    const nextInMs = waitMs > 0 ? waitMs : this.#nextInMs(run, rates, permits !== null, isShort);
    const wakeInMs = Math.max(nextInMs, this.#wakeInMs(run, rates, isShort));
    if (rates.reason !== null && rates.reason !== "width" && waitingOf(run) > 0) {
      this.#pacedUntilMs = Math.max(this.#pacedUntilMs, nowMs + wakeInMs + GATE_PACED_MS);
      this.#pacedReason = rates.reason;
    }
    const isOpen = rates.amount === null && permits === null;
    const ttlMs = isOpen ? GATE_OPEN_TTL_MS : Math.max(GATE_TTL_MS, nextInMs * 2);
    this.#hold(run, { permits, amount: rates.amount, ttlMs, wakeInMs }, nowMs);
    const { amount } = rates;
    const counts = { requests: amount?.requests ?? null, tokens: amount === null ? null : this.#tokensOf(amount) };
    const reason = waitMs > 0 || rates.reason !== null ? rates.reason : isShort ? "width" : null;
    return { ...this.#head(nowMs), reason, permits, ...counts, ttlMs, nextInMs, wakeInMs };
  }

  #hold(
    run: Run,
    grant: { permits: number | null; amount: Amount | null; ttlMs: number; wakeInMs: number },
    nowMs: number,
  ): void {
    // A reply may be lost: until the next report shows the new permits, the run may be using the old ones.
    run.permits = grant.permits === null ? run.inFlight : Math.max(grant.permits, run.permits);
    run.outstanding = grant.amount ?? { ...NO_AMOUNT };
    run.grantUntilMs = nowMs + grant.ttlMs;
    run.punctualUntilMs = nowMs + grant.wakeInMs + GATE_PUNCTUAL_SLACK_MS;
  }

  /** While stopped: one attempt of one run, if it is time for one. */
  #probe(run: Run, stop: Stop, nowMs: number): GateGrant {
    const isProbe = waitingOf(run) > 0 && stop.takeProbe(nowMs);
    const probeInMs = stop.nextProbeInMs(nowMs);
    // A probe that is due waits for a run that has something to send: the others need not ask for it again and again.
    const nextInMs = waitingOf(run) > 0 ? probeInMs : Math.max(GATE_NEXT_MAX_MS, probeInMs);
    run.permits = Math.max(run.inFlight, isProbe ? run.inFlight + 1 : 0);
    run.grantUntilMs = nowMs + GATE_TTL_MS;
    const counts = isProbe
      ? { permits: run.inFlight + 1, requests: 1, tokens: null }
      : { permits: 0, requests: 0, tokens: 0 };
    return { ...this.#head(nowMs), ...counts, ttlMs: Math.max(GATE_TTL_MS, nextInMs), nextInMs };
  }

  #permitsFor(run: Run, runs: readonly Run[], nowMs: number): number | null {
    const width = this.#permitsAt(nowMs);
    if (width === null) return null;
    const permits = permitsOf(run, runs, width);
    // Runs that have not reported to this instance yet may hold all that those that have do not.
    return nowMs < this.#unknownUntilMs ? Math.min(permits, run.permits) : permits;
  }

  #pacedFor({ inFlight }: Run, permits: number | null): Paced | null {
    if (this.#pace === null) return null;
    // Short calls follow each other with one permit: as many as the pace lets through until the next exchange.
    const inTurn = permits === null || permits === 0 ? 0 : Math.ceil(this.#pace.rate * GATE_FAST_NEXT_MS * 1.5);
    return { pace: this.#pace, callsMax: Math.max(0, (permits ?? 0) - inFlight, inTurn) };
  }

  #setPace(nowMs: number): void {
    const rate = this.#settings.adaptive.mode === "aimd" ? this.#width.ratePerMs(this.#latencyMs) : null;
    if (rate === null) this.#pace = null;
    else if (this.#pace === null) this.#pace = new Pace(rate, nowMs);
    else this.#pace.set(rate, nowMs);
  }

  #nextInMs(run: Run, rates: RateGrant, isShrunk: boolean, isShort: boolean): number {
    if (!isShrunk && rates.amount === null && isLight(run)) return GATE_OPEN_TTL_MS;
    if (!this.#rates.isKnown && this.#answers < GATE_ANSWERS_MIN) return GATE_FAST_NEXT_MS;
    const isIdle = waitingOf(run) === 0;
    const byRates = rates.nextInMs < Infinity ? rates.nextInMs : rates.left < 0.5 ? GATE_NEXT_MAX_MS : openNextMs(run);
    if (!isShrunk) return byRates;
    // Of a pace that lets few calls through, nothing is missed by waiting for the next of them.
    if (rates.reason === "width" && rates.nextInMs >= SLOW_PACE_MS) return rates.nextInMs;
    return Math.min(byRates, isShort || !isIdle ? GATE_FAST_NEXT_MS : GATE_NEXT_MAX_MS);
  }

  /** When a run wakes up whose calls wait; 0 = what it waits for is not known, or it waits for nothing. */
  #wakeInMs(run: Run, rates: RateGrant, isShort: boolean): number {
    const forRate = rates.reason === null ? Infinity : rates.wakeInMs;
    const mostMs = run.workClass === "interactive" ? GATE_NEXT_MAX_MS : GATE_SLEEP_MS_MAX;
    // Permits come back when calls end, one after the other.
    const forPermit = isShort ? Math.min(mostMs, this.#latencyMs * GATE_SLEEP_LATENCY_SHARE) : Infinity;
    const wakeInMs = Math.min(forRate, forPermit);
    return wakeInMs < Infinity ? wakeInMs : 0;
  }

  /** Tokens in the measure of the run: all of a call's, though only a part of them may be what is scarce. */
  #tokensOf({ tokens }: Amount): number {
    return Math.ceil(tokens);
  }

  #head(nowMs: number): Pick<GateGrant, "epoch" | "class" | "reason" | "waitMs" | "stop"> {
    const stop = this.#stop;
    const gateClass = this.classAt(nowMs);
    return {
      epoch: this.#epoch,
      class: gateClass,
      reason: reasonOf(gateClass, this.#pacedReason),
      waitMs: Math.max(0, this.#waitUntilMs - nowMs),
      stop: stop === null ? null : { reason: stop.reason, forMs: nowMs - stop.sinceMs, message: stop.message },
    };
  }

  #lastErrorAt(nowMs: number): GateStatus["lastError"] {
    if (this.#lastError === null) return null;
    const { class: failure, message, atMs } = this.#lastError;
    return { class: failure, message, forMs: nowMs - atMs };
  }
}

/** How fast the mean latency follows what is reported. */
const LATENCY_GAIN = 0.3;

/** A run with many calls in flight shows sooner whether its provider becomes slower. */
function openNextMs(run: Run): number {
  return run.inFlight + waitingOf(run) >= GATE_BUSY_IN_FLIGHT ? GATE_BUSY_NEXT_MS : GATE_OPEN_NEXT_MS;
}

/** A run with a call or two at a time, as one whose client asks one question after the other, shows hardly anything. */
function isLight(run: Run): boolean {
  return run.inFlight + waitingOf(run) <= LIGHT_CALLS_MAX;
}

const LIGHT_CALLS_MAX = 2;

/** Time between two calls of a slow pace. */
const SLOW_PACE_MS = 500;

function isRejection({ class: failure }: GateFailure): boolean {
  return failure === "rate_limited" || failure === "overloaded";
}

function rejectedIn({ failures }: GateReport): number {
  return failures.filter(isRejection).reduce((sum, { count }) => sum + count, 0);
}

function reasonOf(gateClass: GateClass, paced: GateReason | null): GateReason | null {
  if (gateClass === "paced") return paced ?? "requests_per_minute";
  if (gateClass === "shrunk") return "width";
  return gateClass === "stopped" ? "stopped" : null;
}

function waitingClasses(run: Run | undefined, nowMs: number): WasWaiting {
  if (run === undefined || run.punctualUntilMs <= nowMs) return {};
  const { interactive, standard, batch } = run.claims;
  return { interactive: interactive.unmet > 0, standard: standard.unmet > 0, batch: batch.unmet > 0 };
}
