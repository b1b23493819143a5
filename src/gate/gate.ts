/**
 * A gate: what all runs together may start with one key of one upstream. It sees reports and gives grants, never single
 * calls. It has no clock: every method takes the time.
 */
import {
  GATE_ANSWERS_MIN,
  GATE_BUSY_IN_FLIGHT,
  GATE_BUSY_NEXT_MS,
  GATE_EXCHANGE_EVERY_MS,
  GATE_FAST_NEXT_MS,
  GATE_FREE_PERMITS,
  GATE_HEADROOM_SHARE,
  GATE_LATENCY_DEFAULT_MS,
  GATE_NEXT_MAX_MS,
  GATE_OPEN_NEXT_MS,
  GATE_OPEN_TTL_MS,
  GATE_PACED_MS,
  GATE_PERMITS_STORE_EVERY_MS,
  GATE_PLENTY_SHARE,
  GATE_PUNCTUAL_SLACK_MS,
  GATE_RUN_TTL_MS,
  GATE_SLEEP_LATENCY_SHARE,
  GATE_SLEEP_MS_MAX,
  GATE_TTL_MS,
  GATE_UNKNOWN_IN_FLIGHT_MAX,
  GATE_VISITS_MAX,
  RETRY_AFTER_MAX_MS,
} from "../limits.ts";
import { BusyModels } from "./busy-models.ts";
import { Latencies } from "./latencies.ts";
import { Pace } from "./pace.ts";
import { Penalty } from "./penalty.ts";
import { PermitShares } from "./runs/permits.ts";
import type { GateMemory } from "./memory.ts";
import { NO_RATE, Rates, type Paced, type RateGrant, type WasWaiting } from "./rates.ts";
import { Registry, type News } from "./runs/registry.ts";
import { isIdle, newRun, waitingOf, type Run } from "./runs/run.ts";
import type { GateSettings } from "./settings.ts";
import { NO_AMOUNT, Started, type Amount } from "./started.ts";
import { Stop } from "./stop.ts";
import { heldBy } from "./runs/sums.ts";
import { AdaptiveWidth } from "./width.ts";
import {
  WORK_CLASSES,
  type GateClass,
  type GateFailure,
  type GateGrant,
  type GateReason,
  type GateReport,
  type GateStatus,
  type WorkClass,
} from "./wire.ts";

export class Gate {
  readonly #settings: GateSettings;
  readonly #epoch: number;
  /** How long attempts take, of all runs. */
  readonly latencies = new Latencies();
  readonly #registry = new Registry();
  readonly #shares = new PermitShares(this.#registry);
  readonly #started: Started;
  readonly #rates = new Rates();
  readonly #busyModels = new BusyModels();
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
  /** When the last grant of permits is over, at the latest. */
  #permitsUntilMs = 0;
  /** Attempts that have succeeded since this instance began: after a few it is known whether their headers show limits. */
  #answers = 0;
  #latencyMs = GATE_LATENCY_DEFAULT_MS;
  /** By how much later than the one before the next of many runs comes back. */
  #spreadMs = 0;
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
    this.#permitsUntilMs = memory.permitsUntilMs ?? Infinity;
    this.#unknownUntilMs = Math.min(nowMs + GATE_TTL_MS, this.#permitsUntilMs);
    this.#permitsUntilMs = this.#unknownUntilMs;
  }

  /** Exchanges a report for a grant. */
  exchange(report: GateReport, nowMs: number): GateGrant {
    this.#registry.expire(nowMs);
    const known = this.#registry.takeOut(report.run);
    const wasWaiting = waitingClasses(known, nowMs);
    const sinceMs = known?.seenMs ?? nowMs;
    const admitted = known ?? this.#registry.admit(report, nowMs);
    const run = admitted ?? newRun(report.run, report.instance, nowMs);
    const news = this.#registry.take(run, report, nowMs);
    run.outstanding = { ...NO_AMOUNT };
    run.permits = report.permits ?? report.inFlight;
    this.#learn(report, news, sinceMs, nowMs);
    const rejected = news.isNew ? rejectedIn(report) : 0;
    this.#rates.settle(run, { started: news.started.requests, rejected }, this.#registry.sums, nowMs);
    const grant = admitted === null ? this.#turnAway(nowMs) : this.#decide(run, wasWaiting, nowMs);
    run.forgetMs = nowMs + Math.max(GATE_RUN_TTL_MS, (grant.wakeInMs ?? 0) * 2);
    if (admitted !== null) this.#registry.putBack(run, nowMs);
    // A run that reports often has enough samples of its own, or soon will have.
    const hasLatencies = report.epoch !== this.#epoch || grant.nextInMs >= GATE_NEXT_MAX_MS;
    const full = hasLatencies ? { ...grant, ...this.latencies.forGrant } : grant;
    const busyModels = this.#busyModels.at(nowMs);
    return busyModels.length === 0 ? full : { ...full, busyModels };
  }

  /**
   * The run had nothing waiting or in flight any more after its report of this number: a later one may have overtaken this.
   * @param last How its attempts have ended since that report.
   */
  leave(run: string, number: number, last: GateReport | null, nowMs: number): void {
    // A report that came later has all that this one has.
    if (last !== null && (this.#registry.get(run)?.number ?? 0) < last.number) this.exchange(last, nowMs);
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

  /** The runs that use the gate, or may start something there, most urgent first: for a notice that it has changed. */
  users(most = Infinity): string[] {
    return this.#mostUrgent((run) => !isIdle(run), most);
  }

  /** The runs that may start something without another exchange, most urgent first. */
  holders(most = Infinity): string[] {
    return this.#mostUrgent((run) => run.permits > run.inFlight || run.outstanding.requests >= 1, most);
  }

  #mostUrgent(isMeant: (run: Run) => boolean, most: number): string[] {
    const meant: Record<WorkClass, string[]> = { interactive: [], standard: [], batch: [] };
    for (const run of this.#registry.all()) {
      if (isMeant(run)) meant[run.workClass].push(run.id);
      if (meant.interactive.length >= most) break;
    }
    return WORK_CLASSES.flatMap((name) => meant[name]).slice(0, most);
  }

  /** Runs that were looked at one by one, of all exchanges: what an exchange costs beside thousands of runs. */
  get visits(): number {
    return this.#registry.visits;
  }

  /** What a run is sent when the class has changed: its grant is over, and it exchanges at once. */
  notice(nowMs: number): GateGrant {
    const nothing = { permits: 0, requests: 0, tokens: 0 };
    return { ...this.#head(nowMs), ...nothing, ttlMs: GATE_TTL_MS, nextInMs: 0 };
  }

  /** Time for which no call starts, because the provider said so, ms. */
  waitMsAt(nowMs: number): number {
    return Math.max(0, this.#waitUntilMs - nowMs);
  }

  memory(): GateMemory {
    const stop = this.#stop?.stored() ?? null;
    const [waitUntilMs, permitsUntilMs] = [this.#waitUntilMs, this.#permitsUntilMs];
    return { stop, width: this.#width.stored(), buckets: this.#rates.stored(), waitUntilMs, permitsUntilMs };
  }

  status(nowMs: number): GateStatus {
    this.#registry.expire(nowMs, Infinity);
    const { inFlight, held, waiting } = this.#registry.sums;
    const { class: gateClass, reason, stop } = this.#head(nowMs);
    return {
      epoch: this.#epoch,
      class: gateClass,
      reason,
      width: this.#permitsAt(nowMs),
      inFlight,
      permits: this.#permitsAt(nowMs) === null ? null : held,
      buckets: this.#rates.status(nowMs),
      // No call waits for an open gate. Runs seldom report to one, so the queue lengths in their reports are outdated.
      waiting: gateClass === "open" ? 0 : waiting,
      runs: this.#registry.size,
      waitMs: this.waitMsAt(nowMs),
      stop: stop === null ? null : { ...stop, nextProbeInMs: this.#stop?.nextProbeInMs(nowMs) ?? 0 },
      lastError: this.#lastErrorAt(nowMs),
      latency: this.latencies.status(),
      busyModels: this.#busyModels.at(nowMs),
    };
  }

  #permitsAt(nowMs: number): number | null {
    const { adaptive, maxInFlight } = this.#settings;
    if (this.#penalty !== null) return this.#penalty.widthAt(nowMs, maxInFlight);
    return adaptive.mode === "aimd" ? this.#width.permits : null;
  }

  // ---- what a report teaches ----

  #learn(report: GateReport, { run, started, succeeded, isNew }: News, sinceMs: number, nowMs: number): void {
    const inFlight = this.#inFlightWith(run);
    this.#started.add(started, sinceMs, Math.max(sinceMs, nowMs - (report.sinceStartMs ?? 0)), nowMs);
    this.#answers += succeeded;
    this.#rates.start(started, nowMs);
    this.#pace?.start(started.requests, nowMs);
    if (!isNew) return;
    const { meanMs = this.#latencyMs, models = [] } = report.latency ?? {};
    this.#latencyMs += (meanMs - this.#latencyMs) * LATENCY_GAIN;
    this.latencies.add(models);
    this.#busyModels.answered(models, nowMs);
    for (const sample of report.samples) this.#rates.follow(sample, this.#started, this.#latencyMs, nowMs);
    // The headers of the same answers have shown which buckets there are.
    if (report.used !== undefined) this.#rates.used(report.used);
    if (report.recovered) this.#stop = null;
    this.#width.count(succeeded);
    let hasRejections = false;
    for (const failure of report.failures) hasRejections = this.#failed(failure, inFlight, nowMs) || hasRejections;
    if (this.#settings.adaptive.mode !== "aimd" || hasRejections) return;
    this.#width.succeeded({ inFlight, count: succeeded, models }, this.#latencyMs, nowMs);
  }

  /**
   * Attempts in flight of all runs. Of more runs than permits, each starts a call and ends it between two of its reports: there, what
   * they hold is what they use.
   */
  #inFlightWith(run: Run): number {
    const { inFlight, held, runs } = this.#registry.sums;
    const isCrowded = runs >= (this.#width.permits ?? Infinity);
    return isCrowded ? held + heldBy(run) : inFlight + run.inFlight;
  }

  /**
   * Returns whether the key has rejected attempts.
   * @param inFlight Attempts in flight of all runs after the failures.
   */
  #failed(reported: GateFailure, inFlight: number, nowMs: number): boolean {
    const atMs = nowMs - Math.max(0, reported.ageMs);
    if (reported.class !== "schema_violation") {
      this.#lastError = { class: reported.class, message: reported.message, atMs };
    }
    if (reported.class === "stopped") {
      this.#stopped(reported, atMs, nowMs);
      return false;
    }
    const untilMs = reported.hintMs === null ? null : atMs + Math.min(reported.hintMs, RETRY_AFTER_MAX_MS);
    const isOverload = reported.class === "overloaded";
    const count = isOverload ? this.#busyModels.overloaded(reported, untilMs, nowMs) : reported.count;
    if (count === 0) return false;
    const failure = { ...reported, count };
    if (isRejection(failure)) {
      this.#waitUntilMs = Math.max(this.#waitUntilMs, untilMs ?? 0);
      this.#rates.rejected(untilMs === null ? null : untilMs - nowMs, nowMs);
    }
    this.#penalty?.failed(failure, inFlight + count, nowMs);
    if (!isRejection(failure)) return false;
    if (this.#settings.adaptive.mode === "aimd" && !this.#isExplained(failure, nowMs))
      this.#width.rejected(count, inFlight, nowMs, isOverload);
    return true;
  }

  /** Whether a rejection is one of the rates that the headers show: then they limit what is started, not the width. */
  #isExplained({ class: failure }: GateFailure, nowMs: number): boolean {
    if (failure !== "rate_limited" || !this.#rates.isKnown) return false;
    return this.#rates.leftAt(this.#registry.sums.outstanding, nowMs) < GATE_PLENTY_SHARE;
  }

  #stopped({ stop, message }: GateFailure, atMs: number, nowMs: number): void {
    this.#stop ??= new Stop({ reason: stop ?? "forbidden", message, sinceMs: atMs }, nowMs);
  }

  // ---- what a run may do ----

  #decide(run: Run, wasWaiting: WasWaiting, nowMs: number): GateGrant {
    if (this.#stop !== null) return this.#probe(run, this.#stop, nowMs);
    this.#setPace(nowMs);
    const permits = this.#permitsFor(run, nowMs);
    const waitMs = this.#spreadWaitMs(nowMs);
    const rates: RateGrant =
      waitMs > 0
        ? { ...NO_RATE, amount: { ...NO_AMOUNT }, reason: "requests_per_minute", nextInMs: waitMs, wakeInMs: waitMs }
        : this.#rates.grant(run, wasWaiting, this.#registry.sums, this.#pacedFor(run, permits), nowMs);
    const isShort = permits !== null && permits < run.inFlight + waitingOf(run);
    const soonestMs = this.#soonestMs(run, { behind: rates.behind, hasPermits: (permits ?? 0) > 0, isShort });
    const nextInMs = waitMs > 0 ? waitMs : Math.max(soonestMs, this.#nextInMs(run, rates, permits !== null, isShort));
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
    // What is left is for others that know the gate, too.
    const newRuns = Math.min(GATE_UNKNOWN_IN_FLIGHT_MAX, Math.floor(rates.room * GATE_HEADROOM_SHARE));
    const forNew = rates.amount === null ? {} : { newRuns };
    return { ...this.#head(nowMs), waitMs, reason, permits, ...counts, ttlMs, nextInMs, wakeInMs, ...forNew };
  }

  /** Time for which nobody starts, because the provider said so. Many runs come back one after the other. */
  #spreadWaitMs(nowMs: number): number {
    const waitMs = this.waitMsAt(nowMs);
    return waitMs > 0 ? waitMs + this.#nextSpreadMs() : 0;
  }

  /**
   * Time before which a run of many does not come back. One with permits shows when they are free, so it may come at any time; one
   * that has its turn soon, or has received less than others, comes sooner.
   */
  #soonestMs(run: Run, state: { behind: number; hasPermits: boolean; isShort: boolean }): number {
    const { size } = this.#registry;
    if (size <= GATE_VISITS_MAX || state.hasPermits) return 0;
    const spreadMs = (size * GATE_EXCHANGE_EVERY_MS) / 2 + this.#nextSpreadMs();
    if (state.isShort) return Math.min(spreadMs, Math.max(GATE_FAST_NEXT_MS, this.#turnInMs(run)));
    return state.behind > BEHIND_MAX ? spreadMs / 4 : spreadMs;
  }

  #nextSpreadMs(): number {
    const { size } = this.#registry;
    if (size <= GATE_VISITS_MAX) return 0;
    this.#spreadMs = (this.#spreadMs + GATE_EXCHANGE_EVERY_MS) % (size * GATE_EXCHANGE_EVERY_MS);
    return this.#spreadMs;
  }

  /** What a run gets for which the gate has no room: as long as the key is limited, it waits until others have ended. */
  #turnAway(nowMs: number): GateGrant {
    const isOpen = this.classAt(nowMs) === "open" && !this.#rates.isKnown;
    const nextInMs = Math.max(this.waitMsAt(nowMs), this.#registry.size * GATE_EXCHANGE_EVERY_MS);
    const counts = { permits: isOpen ? null : 0, requests: null, tokens: null };
    const head = this.#head(nowMs);
    const reason = isOpen ? null : (head.reason ?? "requests_per_minute");
    return { ...head, reason, ...counts, ttlMs: nextInMs * 2, nextInMs, wakeInMs: nextInMs };
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
    // In steps, because each is a row.
    if (run.permits > 0 && grant.permits !== null && run.grantUntilMs > this.#permitsUntilMs)
      this.#permitsUntilMs = run.grantUntilMs + GATE_PERMITS_STORE_EVERY_MS;
    run.punctualUntilMs = nowMs + grant.wakeInMs + GATE_PUNCTUAL_SLACK_MS;
  }

  /** While stopped: one attempt of one run, if it is time for one. */
  #probe(run: Run, stop: Stop, nowMs: number): GateGrant {
    const isProbe = waitingOf(run) > 0 && stop.takeProbe(nowMs);
    const probeInMs = stop.nextProbeInMs(nowMs) + this.#nextSpreadMs();
    // A probe that is due waits for a run that has something to send: the others need not ask for it again and again.
    const nextInMs = waitingOf(run) > 0 ? probeInMs : Math.max(GATE_NEXT_MAX_MS, probeInMs);
    run.permits = Math.max(run.inFlight, isProbe ? run.inFlight + 1 : 0);
    run.grantUntilMs = nowMs + GATE_TTL_MS;
    const counts = isProbe
      ? { permits: run.inFlight + 1, requests: 1, tokens: null }
      : { permits: 0, requests: 0, tokens: 0 };
    return { ...this.#head(nowMs), ...counts, ttlMs: Math.max(GATE_TTL_MS, nextInMs), nextInMs };
  }

  #permitsFor(run: Run, nowMs: number): number | null {
    const width = this.#permitsAt(nowMs);
    if (width === null) return this.#permitsOfNewcomer(run);
    const permits = this.#shares.of(run, width);
    // Runs that have not reported to this instance yet may hold all that those that have do not.
    return nowMs < this.#unknownUntilMs ? Math.min(permits, run.permits) : permits;
  }

  /** What each of many runs may begin with at a key of which nothing is known yet; null = few, or something is known. */
  #permitsOfNewcomer(run: Run): number | null {
    if (this.#rates.isKnown || this.#answers >= GATE_ANSWERS_MIN || this.#settings.adaptive.mode === "off") return null;
    const permits = Math.floor(GATE_UNKNOWN_IN_FLIGHT_MAX / (this.#registry.sums.busy + 1));
    if (permits >= GATE_FREE_PERMITS) return null;
    return Math.max(1, Math.min(permits, run.inFlight + waitingOf(run)));
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

  /** When a run may have its turn to get a permit, among others that wait for one, ms. */
  #turnInMs(run: Run): number {
    const { tickets } = this.#registry;
    const width = Math.max(1, this.#width.permits ?? 1);
    const places = run.ticket === null ? 0 : tickets.placeOf(run) - 1;
    return (places * this.#latencyMs) / width;
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
      waitMs: this.waitMsAt(nowMs),
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

/** Part of a call by which a run may be behind others before it comes back sooner. */
const BEHIND_MAX = 0.75;

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

function waitingClasses(run: Run | null, nowMs: number): WasWaiting {
  if (run === null || run.punctualUntilMs <= nowMs) return {};
  const { interactive, standard, batch } = run.claims;
  return { interactive: interactive.unmet > 0, standard: standard.unmet > 0, batch: batch.unmet > 0 };
}
