/**
 * One gate as a run sees it: what the run has in flight there, the grant that it holds, and what it reports. The run decides
 * by itself while no gate is known or reachable: up to its own limit, and after the Retry-After that it has met itself.
 */
import type { StopReason } from "../../call.ts";
import type { GateGrant, GateReason, GateReport } from "../../gate/wire.ts";
import { GATE_FREE_PERMITS, KEY_PROBE_MS, METERS_RETIRE_MS } from "../../limits.ts";
import { ExchangeTimes, type Demand, type Situation } from "./exchange-times.ts";
import type { Answered } from "./latency-changes.ts";
import type { Newcomer } from "./newcomers.ts";
import { GateChanges } from "./changes.ts";
import { ModelWidths } from "./model-widths.ts";
import { MeanTokens, type GateTokens } from "../leases/tokens.ts";

/** Why no attempt may start at a gate, and when one may, if that is known. `model`: only this one is overloaded; absent = all calls wait. */
export type GateWait = { reason: GateReason; readyAtMs: number | null; model?: string };

/** The key of a gate does not work: why, since when, and when one attempt finds out whether it works again. */
export type Stop = {
  reason: StopReason;
  message: string | null;
  sinceMs: number;
  knownSinceMs: number;
  probeAtMs: number;
  /** Whether the gate has said so, too: then it ends when the gate says otherwise. */
  isOfGate: boolean;
};

type Started = { requests: number; tokens: number };

/** A grant with the time of its arrival, and what had been started when its report was written. */
type Held = { grant: GateGrant; atMs: number; base: Started };

/** Who reports: the run, and the instance of its object. */
type Who = Pick<GateReport, "run" | "instance" | "weight">;

/** What of a run a report names. */
type Reported = { classes: GateReport["classes"]; demand: Demand; lent: number };

export class GateClient {
  readonly news = new GateChanges();
  readonly times = new ExchangeTimes();
  readonly models = new ModelWidths();
  readonly #tokens = new MeanTokens();
  readonly #started: Started = { requests: 0, tokens: 0 };
  #succeeded = 0;
  #inFlight = 0;
  readonly #isShared: boolean;
  #maxInFlight: number;
  #cool: { untilMs: number; reason: GateReason } = { untilMs: 0, reason: "requests_per_minute" };
  #stop: Stop | null = null;
  #held: Held | null = null;
  /** What had been started when the report was written that has no reply yet, and whether it contained failures. */
  #reported: { base: Started; atMs: number; hasFailures: boolean } | null = null;
  /** When the last attempt was started. */
  #startedAtMs = -Infinity;
  /** Calls that may be sent although the key does not work, because their clients want the upstream's error at once. */
  #impatient = 0;
  #recoveries = 0;
  /** Attempts that may start before the gate has replied, as far as other new runs leave room for them. */
  #freePermits = GATE_FREE_PERMITS;
  readonly #newcomer: Newcomer | null;
  /** True if work that can end at once, as a batch does, was in the last report: when nothing is left of it, the run leaves. */
  #hasReportedBatch = false;
  /** True if calls would wait here, but the run had none when that began: its log does not have it. */
  #isUnlogged = false;
  /** True once the gate has noted that the run may have counted more than the gate has: a reader of the counts visits it. */
  #isAnnounced = false;
  /** True once the run has said that it exchanges with the gate before it counts more. */
  #hasRetired = false;
  /** True if something was counted that the gate may not know of. */
  #owes = false;
  /** When the last report was written that the gate has replied to: it knows the stops that are older. */
  #clearsBeforeMs = -Infinity;

  /**
   * @param isShared Whether a gate decides for all runs; else the run decides alone.
   * @param newcomer Its part of what new runs begin with there; absent = no other run is new.
   */
  constructor({ maxInFlight, isShared, newcomer }: { maxInFlight: number; isShared: boolean; newcomer?: Newcomer }) {
    this.#maxInFlight = maxInFlight;
    this.#isShared = isShared;
    this.#newcomer = newcomer ?? null;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get maxInFlight(): number {
    return this.#maxInFlight;
  }

  /** No attempt starts before this time, because the provider said so: to an attempt of this run, or of another. */
  get limitedUntilMs(): number {
    const held = this.#held;
    const heldMs = held === null || held.grant.waitMs === 0 ? 0 : held.atMs + held.grant.waitMs;
    return Math.max(this.#cool.untilMs, heldMs);
  }

  /** True if the report without a reply contained failures: then the run knows why calls wait. */
  get hasReportedFailures(): boolean {
    return this.#reported?.hasFailures === true;
  }

  /** Set while the key is known not to work. */
  get stop(): Readonly<Stop> | null {
    return this.#stop;
  }

  /** How often the key worked again after a stop. */
  get recoveries(): number {
    return this.#recoveries;
  }

  /** The mean tokens of an attempt; null = none was started here. */
  get tokensPerCall(): Readonly<GateTokens> | null {
    return this.#tokens.mean;
  }

  get isAnnounced(): boolean {
    return this.#isAnnounced;
  }

  /** Something was counted that the gate may not know of: an exchange is due. */
  owes(): void {
    this.#owes = true;
  }

  announced(): void {
    this.#isAnnounced = true;
    this.#owes = false;
  }

  /** Whether nothing is in flight or on its way that could count more or announce that it will, and nothing was for a while. */
  mayRetire(nowMs: number): boolean {
    const isQuiet = this.#inFlight === 0 && !this.times.isPending && !this.#owes;
    return isQuiet && nowMs >= this.#startedAtMs + METERS_RETIRE_MS;
  }

  /** The run counts no more before it has exchanged with the gate. */
  retire(): void {
    this.#isAnnounced = false;
    this.#hasRetired = true;
  }

  /** True if nobody decides for all runs. */
  get #isAlone(): boolean {
    return !this.#isShared || this.times.isUnreachable;
  }

  /** True unless the gate is known to make calls wait. */
  isOpen(nowMs: number): boolean {
    if (this.#stop !== null || this.#cool.untilMs > nowMs) return false;
    return this.#held === null || this.#held.grant.class === "open" || this.times.isUnreachable;
  }

  /** The largest limit of the gate's targets holds: a model that is not configured any more has none. */
  allow(maxInFlight: number): void {
    this.#maxInFlight = Math.max(this.#maxInFlight, maxInFlight);
  }

  /** Nothing starts before the gate has replied: an earlier instance of the run may have waited for it. */
  waitForReply(): void {
    this.#freePermits = 0;
  }

  /** An attempt that an earlier instance of the run has started is in flight: that one has exchanged with the gate, unless it was killed. */
  restored(): void {
    this.#inFlight += 1;
    this.#isAnnounced = true;
  }

  started(tokens: GateTokens, nowMs: number): void {
    this.#inFlight += 1;
    this.#started.requests += 1;
    this.#started.tokens += tokens.all;
    this.#startedAtMs = nowMs;
    if (this.#held === null && !this.#isAlone) this.#newcomer?.started(nowMs);
    this.#tokens.add(tokens);
    if (this.#stop === null) return;
    // It shows whether the key works again, and others wait for that.
    this.#stop.probeAtMs = nowMs + KEY_PROBE_MS;
    this.#impatient = Math.max(0, this.#impatient - 1);
  }

  ended(): void {
    this.#inFlight -= 1;
    if (this.#held === null) this.#newcomer?.ended();
  }

  /** An attempt has ended in an answer: a key that was stopped when it started works again. */
  answered({ startedAtMs, ...answered }: Answered & { startedAtMs: number }): void {
    this.#succeeded += 1;
    this.news.answered(answered);
    if (this.#stop === null || startedAtMs < this.#stop.knownSinceMs) return;
    this.#clearStop();
    if (this.#held?.grant.class === "stopped") this.#held = null;
    this.news.recovered();
  }

  /** Obeys a rate limit that an attempt of the run has met: the others would meet it, too. */
  cool(untilMs: number, reason: GateReason): void {
    if (untilMs > this.#cool.untilMs) this.#cool = { untilMs, reason };
  }

  /** The upstream calls the key unusable. True if that is new. */
  stopped(reason: StopReason, message: string | null, nowMs: number): boolean {
    if (this.#stop !== null) return false;
    const probeAtMs = nowMs + KEY_PROBE_MS;
    this.#stop = { reason, message, sinceMs: nowMs, knownSinceMs: nowMs, probeAtMs, isOfGate: false };
    return true;
  }

  /** A client wants the upstream's answer to one call at once, even if the key does not work: this is how a repaired key is tested. */
  impatient(): void {
    if (this.#stop !== null) this.#impatient += 1;
  }

  /** When time alone lets an attempt start; null = it does not, or that time has passed. */
  readyAtMs(nowMs: number): number | null {
    const wait = this.waitOf(nowMs);
    if (wait === null || wait.readyAtMs === null || wait.readyAtMs <= nowMs) return null;
    // The next permits come with an exchange.
    const isOfChunk = this.#stop === null && wait.readyAtMs > this.limitedUntilMs;
    return isOfChunk ? null : wait.readyAtMs;
  }

  /**
   * Why no attempt may start now; null = the gate lets one start. The run's own limit is not among the reasons.
   * @param lent Attempts that credits may start here.
   */
  waitOf(nowMs: number, lent = 0): GateWait | null {
    if (this.#stop !== null) return this.#stopWait(this.#stop, nowMs);
    if (this.#cool.untilMs > nowMs) return { reason: this.#cool.reason, readyAtMs: this.#cool.untilMs };
    const held = this.#held;
    const taken = this.#inFlight + lent;
    if (this.#isAlone) return this.#waitAlone(taken, nowMs);
    if (held === null) {
      const free = Math.min(this.#freePermits, this.#newcomer?.permitsAt(nowMs) ?? Infinity);
      return taken < free ? null : { reason: "width", readyAtMs: null };
    }
    if (nowMs >= held.atMs + held.grant.ttlMs) {
      // Of a key with small limits no more than it last let start: it has no more for a burst after a pause.
      const free = Math.min(GATE_FREE_PERMITS, Math.max(1, held.grant.requests ?? GATE_FREE_PERMITS));
      const isFree = held.grant.class === "open" && taken < free;
      return isFree ? null : { reason: held.grant.reason ?? "width", readyAtMs: null };
    }
    return this.#chunkWait(held, taken, nowMs);
  }

  /**
   * How many attempts may start now by the permits and requests of the grant: never too few. The run's own limit is not counted.
   * @param lent Attempts that credits may start here.
   */
  roomAt(nowMs: number, lent = 0): number {
    if (this.waitOf(nowMs, lent) !== null) return 0;
    const held = this.#held;
    const isValid = held !== null && nowMs < held.atMs + held.grant.ttlMs;
    if (!isValid || this.#isAlone || this.#stop !== null) return Infinity;
    const { permits, requests } = held.grant;
    const ofWidth = permits === null ? Infinity : permits - this.#inFlight - lent;
    const ofChunk = requests === null ? Infinity : requests - (this.#started.requests - held.base.requests);
    return Math.min(ofWidth, ofChunk);
  }

  /**
   * Nobody decides for all runs: a gate that cannot be reached stops no run. At a key that is known to be limited the run makes
   * one attempt at a time, because others are at it, too; and none before the time that the provider has named to any of them.
   */
  #waitAlone(taken: number, nowMs: number): GateWait | null {
    if (this.limitedUntilMs > nowMs)
      return { reason: this.#held?.grant.reason ?? "requests_per_minute", readyAtMs: this.limitedUntilMs };
    const isOpen = this.#held === null || this.#held.grant.class === "open";
    return isOpen || taken === 0 ? null : { reason: this.#held?.grant.reason ?? "width", readyAtMs: null };
  }

  #stopWait({ probeAtMs }: Stop, nowMs: number): GateWait | null {
    const held = this.#held?.grant.class === "stopped" ? this.#held : null;
    const isGranted = held !== null && nowMs < held.atMs + held.grant.ttlMs && this.#chunkWait(held, 0, nowMs) === null;
    const isAlone = this.#isAlone && nowMs >= probeAtMs;
    if (this.#impatient > 0 || (this.#inFlight === 0 && (isGranted || isAlone))) return null;
    const nextAtMs = held === null ? probeAtMs : held.atMs + held.grant.nextInMs;
    return { reason: "stopped", readyAtMs: nextAtMs > nowMs ? nextAtMs : null };
  }

  /** What of a valid grant is used up. */
  #chunkWait({ grant, atMs, base }: Held, taken: number, nowMs: number): GateWait | null {
    const { permits, requests, tokens, waitMs, nextInMs, reason } = grant;
    const nextAtMs = atMs + nextInMs;
    if (nowMs < atMs + waitMs) return { reason: reason ?? "requests_per_minute", readyAtMs: atMs + waitMs };
    if (permits !== null && taken >= permits) return { reason: reason ?? "width", readyAtMs: null };
    // A width below a few calls is kept by a pace.
    if (requests !== null && this.#started.requests - base.requests >= requests)
      return { reason: reason === "width" ? reason : "requests_per_minute", readyAtMs: nextAtMs };
    const used = this.#started.tokens - base.tokens;
    // The first attempt of a chunk may be larger than the chunk: it would never start otherwise.
    const needed = used === 0 ? 1 : Math.max(1, this.#tokens.mean?.all ?? 1);
    if (tokens !== null && used + needed > tokens) return { reason: "tokens_per_minute", readyAtMs: nextAtMs };
    return null;
  }

  /** True while attempts wait because the provider rejects more than a few at once, without saying when to come again. */
  isBeyondWidth(nowMs: number, lent: number): boolean {
    return this.#held?.grant.class === "shrunk" && this.waitOf(nowMs, lent)?.reason === "width";
  }

  /** Whether half of what the grant lets start has been started. */
  get isHalfUsed(): boolean {
    if (this.#held === null) return false;
    const { grant, base } = this.#held;
    const { requests, tokens } = grant;
    const isHalf = (granted: number | null, used: number): boolean =>
      granted !== null && granted > 0 && used * 2 >= granted;
    return (
      isHalf(requests, this.#started.requests - base.requests) || isHalf(tokens, this.#started.tokens - base.tokens)
    );
  }

  /** True while the gate limits the width, because the provider rejects calls without saying when to come again. */
  get isShrunk(): boolean {
    return this.#stop === null && this.#held?.grant.class === "shrunk";
  }

  /** What calls wait for here by the gate's word; null = it is open, or has not replied yet. */
  get reason(): GateReason | null {
    if (this.#stop !== null) return "stopped";
    const grant = this.#held?.grant;
    return grant === undefined || grant.class === "open" ? null : (grant.reason ?? "width");
  }

  /** The same as far as the log of the run has it; null = it has nothing. */
  get loggedReason(): GateReason | null {
    return this.#isUnlogged ? null : this.reason;
  }

  /** Notes whether the log has what calls wait for here. */
  noteLogged(isLogged: boolean): void {
    this.#isUnlogged = !isLogged;
  }

  /** Whether the gate must know of something soon: a failure, or the first headers that show it the limits of its key. */
  get #isUrgent(): boolean {
    const grant = this.#held?.grant;
    const knowsRates = grant === undefined || grant.requests !== null || grant.tokens !== null;
    return this.news.isUrgent || (this.news.hasSamples && !knowsRates);
  }

  /** True if no exchange can be due, whatever waits: a quick look, for every turn. */
  isQuiet(nowMs: number): boolean {
    if (this.times.isPending) return true;
    const held = this.#held;
    const mustAnnounce = this.#owes || (this.#hasRetired && this.#inFlight > 0);
    const hasNews = this.#isUrgent || mustAnnounce || this.times.hasChanged || this.times.isUnreachable;
    if (held?.grant.class !== "open" || hasNews || this.isHalfUsed) return false;
    // An open gate whose rate is known makes calls wait as well, once its chunk is used up.
    return nowMs < held.atMs + held.grant.nextInMs && this.waitOf(nowMs) === null;
  }

  /** When the run should exchange with the gate, with a turn that happens anyway; null = there is no reason to. */
  exchangeAtMs(demand: Demand, nowMs: number): number | null {
    return this.times.nextMs(demand, this.#situation(demand, 0, nowMs));
  }

  /**
   * When the run must wake up to exchange with the gate; null = never.
   * @param lent Attempts that credits may start here.
   */
  wakeAtMs(demand: Demand, lent: number, nowMs: number): number | null {
    return this.times.wakeMs(demand, this.#situation(demand, lent, nowMs));
  }

  #situation(demand: Demand, lent: number, nowMs: number): Situation {
    const held = this.#held;
    const isValid = held !== null && nowMs < held.atMs + held.grant.ttlMs;
    return {
      inFlight: this.#inFlight,
      grant: isValid ? timesOf(held) : null,
      isOpen: this.isOpen(nowMs),
      isUrgent: this.#isUrgent,
      hasRetired: this.#hasRetired,
      owes: this.#owes,
      isHalfUsed: this.isHalfUsed,
      isHeldUp: demand.waiting > 0 && this.waitOf(nowMs, lent) !== null,
    };
  }

  /** Writes a report. Its reply is `granted`, or `unreached` if none comes. */
  report(who: Who, { classes, demand, lent }: Reported, nowMs: number): GateReport {
    const news = this.news.take(nowMs);
    this.#reported = { base: { ...this.#started }, atMs: nowMs, hasFailures: news.failures.length > 0 };
    this.times.reported(demand, nowMs);
    this.#hasReportedBatch = classes.standard.waiting > 0 || classes.batch.waiting > 0;
    return this.#written(who, { classes, lent, news }, nowMs);
  }

  /** Writes the report with which the run leaves the gate: it has no reply. */
  lastWords(who: Who, { classes, lent }: Pick<Reported, "classes" | "lent">, nowMs: number): GateReport {
    const news = this.news.take(nowMs);
    this.news.acknowledged();
    return this.#written(who, { classes, lent, news }, nowMs);
  }

  #written(
    who: Who,
    { classes, lent, news }: Pick<Reported, "classes" | "lent"> & { news: ReturnType<GateChanges["take"]> },
    nowMs: number,
  ): GateReport {
    const base = { ...this.#started };
    const held = this.#held;
    const isValid = held !== null && nowMs < held.atMs + held.grant.ttlMs;
    return {
      ...who,
      ...news,
      epoch: held?.grant.epoch ?? 0,
      classes,
      inFlight: this.#inFlight + lent,
      permits: isValid ? held.grant.permits : 0,
      started: base,
      ...(base.requests === 0 ? {} : { sinceStartMs: Math.max(0, nowMs - this.#startedAtMs) }),
      succeeded: this.#succeeded,
    };
  }

  /**
   * True once when the run gives back what a gate that limits has granted: nothing of it waits or is in flight any more. Single
   * calls that follow each other keep their part of a rate, so that the next one need not ask; permits they give back, also while
   * the key waits for a Retry-After, for of a width of a few they are all that others wait for.
   */
  takeLeave({ waiting }: Demand, nowMs: number): boolean {
    const held = this.#held;
    if (held === null || waiting > 0 || this.#inFlight > 0 || this.times.isPending) return false;
    if (!this.#hasReportedBatch && held.grant.permits === null) return false;
    this.#hasReportedBatch = false;
    const { class: gateClass, ttlMs } = held.grant;
    const isHolding = (gateClass === "paced" || gateClass === "shrunk") && nowMs < held.atMs + ttlMs;
    // The class is kept: what comes later asks before it starts.
    if (isHolding) this.#held = { ...held, grant: { ...held.grant, ttlMs: 0 } };
    return isHolding;
  }

  /** The gate has replied to the report. */
  granted(grant: GateGrant, nowMs: number): void {
    const reported = this.#reported;
    if (reported === null) return;
    this.#reported = null;
    this.#hasRetired = false;
    this.news.acknowledged();
    this.times.succeeded();
    this.models.named(grant.busyModels ?? [], nowMs);
    this.#newcomer?.replied(grant, nowMs);
    // A notice of a change that was sent after the report counts more than the reply: the next exchange is due at once.
    if (!this.times.hasChanged) this.#held = { grant, atMs: nowMs, base: reported.base };
    if (grant.stop !== null) this.#stoppedByGate(grant.stop, nowMs);
    else if (this.#stop !== null && this.#mayClear(this.#stop, reported.atMs)) this.#clearStop();
    this.#clearsBeforeMs = reported.atMs;
  }

  /**
   * Whether a gate that calls the key usable in reply to a report of this time knows of the stop: it has said so itself, or
   * had a report of it before this one, unless it is of a version that ignores stops.
   */
  #mayClear({ knownSinceMs, isOfGate }: Stop, reportedMs: number): boolean {
    return knownSinceMs < (isOfGate ? reportedMs : this.#clearsBeforeMs);
  }

  #clearStop(): void {
    this.#stop = null;
    this.#impatient = 0;
    this.#recoveries += 1;
  }

  #stoppedByGate({ reason, message, forMs }: NonNullable<GateGrant["stop"]>, nowMs: number): void {
    const { knownSinceMs = nowMs, probeAtMs = nowMs + KEY_PROBE_MS } = this.#stop ?? {};
    this.#stop = { reason, message, sinceMs: nowMs - forMs, knownSinceMs, probeAtMs, isOfGate: true };
  }

  /** The gate could not be reached. `random` is uniform in [0, 1). */
  unreached(random: number, nowMs: number): void {
    this.#reported = null;
    this.#newcomer?.left();
    this.times.failed(random, nowMs);
  }

  /** The gate has changed: this grant replaces the last, and the run exchanges at once. */
  changed(grant: GateGrant, nowMs: number): void {
    this.#held = { grant, atMs: nowMs, base: { ...this.#started } };
    this.#newcomer?.replied(grant, nowMs);
    if (grant.stop !== null) this.#stoppedByGate(grant.stop, nowMs);
    this.times.changed();
  }
}

/** When a grant lets the run exchange, and when it must: of a gate that names no time for that, at the same time. */
function timesOf({ grant, atMs }: Held): Situation["grant"] {
  const { reason, nextInMs, wakeInMs = nextInMs } = grant;
  return { nextAtMs: atMs + nextInMs, wakeAtMs: atMs + Math.max(nextInMs, wakeInMs), isShort: reason !== null };
}
