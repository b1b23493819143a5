/**
 * Leased credit in the instance of the gateway that holds it: admits single calls by the same rules as the run object,
 * inside what was lent, and keeps what the run object does not know yet. It has no clock and calls nobody.
 */
import { chargeFor } from "../../../run/money/charge.ts";
import { Ledger, NO_LIMITS, type Amounts } from "../../../run/money/ledger.ts";
import type { CallFacts, CallRules, Outcome } from "../../../call.ts";
import { CoalescingWindow, type CallLabel, type WindowGroup } from "../../../run/leases/concurrency-window.ts";
import type { WindowPosition } from "../../../run/leases/concurrency-window.ts";
import { admissionOf, leaseFor, timeoutOf } from "../../../run/steps/dispatch.ts";
import type { CreditedCall, CreditReport, CreditTerms } from "../../../run/credit.ts";
import { windowIdOf } from "../../../run/queue/group-id.ts";
import { Templates } from "../../../run/learned/templates.ts";
import { learnTemplate, reservedFor } from "../../../run/steps/settle.ts";
import type { AttemptInFlight, Target } from "../../../run/leases/shard.ts";
import { CREDIT_CALLS_KEPT_MAX } from "../../../limits.ts";
import type { SingleSettlement } from "../../methods/calls.ts";
import type { Remaining, Sampled } from "../../methods/types.ts";
import type { CreditReportReply } from "../../methods/credit.ts";
import { RenewedMap } from "../../../renewed/map.ts";

/** A call that the run object does not know yet. */
type HeldCall = {
  callId: string;
  facts: CallFacts;
  onLost: CallRules["onLost"];
  lease: AttemptInFlight;
  window: { group: WindowGroup; number: number; position: WindowPosition };
  ended: ({ outcome: Outcome; atMs: number } & Sampled) | null;
};

/** A report that was not acknowledged, with the calls in it that were in flight when it was written. */
type Sending = { report: CreditReport; calls: HeldCall[]; inFlight: ReadonlySet<HeldCall> };

export type HolderOptions = {
  creditId: string;
  terms: CreditTerms & Remaining;
  upstreams: readonly string[];
  windowMs: number;
  random: () => number;
};

/** A call that has started inside the credit. */
export type Started = { lease: AttemptInFlight; timeoutMs: number; group: WindowGroup };

export class CreditHolder {
  readonly creditId: string;
  readonly #ledger = new Ledger(NO_LIMITS);
  readonly #templates = new Templates(() => null);
  readonly #window: CoalescingWindow;
  readonly #upstreams: ReadonlySet<string>;
  readonly #held = new RenewedMap<string, HeldCall>();
  #permits = 0;
  #inFlight = 0;
  #runRemainingNanoUsd: number | null = null;
  #sending: Sending | null = null;
  #lastNumber = 0;
  #isClosed = false;
  #isEnded = false;
  #windows: { current: WindowGroup | null; number: number } = { current: null, number: 0 };

  constructor({ creditId, terms, upstreams, windowMs, random }: HolderOptions, nowMs: number) {
    this.creditId = creditId;
    this.#upstreams = new Set(upstreams);
    this.#window = new CoalescingWindow(windowMs, (openedAtMs) => windowIdOf(openedAtMs, random()));
    this.#apply(terms, nowMs);
  }

  /** True if nothing is started inside the credit any more, and it must be returned. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True once the credit is gone: it was returned, or charged. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Number of calls that the run object does not know of, or does not know to have ended. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** True from a report's writing until it is acknowledged. */
  get isReporting(): boolean {
    return this.#sending !== null;
  }

  /** What is left of the run's budget in USD, the credit included; null = no limit. */
  get remainingNanoUsd(): number | null {
    const own = this.#ledger.remaining("usd");
    return this.#runRemainingNanoUsd === null || own === null ? null : Math.max(0, this.#runRemainingNanoUsd + own);
  }

  /** What of the credit is neither spent nor reserved. */
  get left(): Readonly<Record<keyof Amounts, number | null>> {
    const of = (dimension: keyof Amounts): number | null => this.#ledger.remaining(dimension);
    return {
      usd: of("usd"),
      calls: of("calls"),
      prompt_tokens: of("prompt_tokens"),
      completion_tokens: of("completion_tokens"),
      new_tokens: of("new_tokens"),
    };
  }

  /** Starts a call, if the credit covers it as the run would admit it; null = the run object must decide. */
  start(
    call: { callId: string; ageMs?: number; facts: CallFacts; onLost: CallRules["onLost"]; target: Target },
    nowMs: number,
  ): Started | null {
    const { callId, ageMs = 0, facts, onLost, target } = call;
    if (this.#isClosed || this.#inFlight >= this.#permits || this.#held.size >= CREDIT_CALLS_KEPT_MAX) return null;
    if (!this.#upstreams.has(target.upstream)) return null;
    // The run object compares what a pull worker reports with the reservation, so it must have that.
    if (target.isPulled === true) return null;
    const admitted = admissionOf(
      // An attempt whose bill may show an unknown template is started by the run object, which knows of all others.
      { facts, target, rules: {}, isInFlight: () => true },
      { ledger: this.#ledger, templates: this.#templates },
      nowMs,
    );
    // A cap that is lowered here would not be lowered by the whole budget.
    if (admitted.kind !== "reserve" || admitted.capKind === "budget") return null;
    const attemptId = `${callId}.1`;
    if (!this.#ledger.reserve(attemptId, admitted.amounts)) return null;
    const attempt = { attemptId, attempt: 1, slotId: null, target, onLost, facts, queuedAtMs: nowMs };
    const lease = leaseFor(attempt, admitted, nowMs);
    const window = this.#join(nowMs, ageMs);
    this.#held.set(attemptId, { callId, facts, onLost, lease, window, ended: null });
    this.#inFlight += 1;
    return { lease, timeoutMs: timeoutOf(facts, target), group: window.group };
  }

  /** The place in this instance's windows of a call that the run object starts. `ageMs`: time since its Worker got it. */
  place(ageMs: number, nowMs: number): { label: CallLabel; group: WindowGroup } {
    const window = this.#join(nowMs, ageMs);
    return { label: labelOf(window, nowMs), group: window.group };
  }

  /** True if the run object has not acknowledged that this attempt has started. */
  holds(attemptId: string): boolean {
    return this.#held.has(attemptId);
  }

  /** Ends an attempt. Its charge; or null if the run object knows of it: then it is settled there. */
  end(
    { attemptId, outcome, samples }: Pick<SingleSettlement, "attemptId" | "outcome" | "samples">,
    nowMs: number,
  ): { charge: Amounts; remainingNanoUsd: number | null } | null {
    const held = this.#held.get(attemptId);
    if (held === undefined || held.ended !== null) return null;
    const { lease } = held;
    const { amounts } = lease;
    const { charge } = chargeFor(outcome, reservedFor(lease, this.#ledger.limits));
    learnTemplate(this.#templates, outcome, lease);
    held.ended = { outcome, atMs: nowMs, ...(samples === undefined ? {} : { samples }) };
    // Under way as a call in flight, it leaves the credit with its whole reservation when the report is acknowledged.
    if (this.#sending?.inFlight.has(held) !== true) {
      this.#ledger.settle(attemptId, charge);
      this.#inFlight -= 1;
    }
    const left = this.remainingNanoUsd;
    const freed = this.#sending?.inFlight.has(held) === true ? amounts.usd - charge.usd : 0;
    return { charge, remainingNanoUsd: left === null ? null : left + freed };
  }

  /** Starts nothing more. */
  close(): void {
    this.#isClosed = true;
  }

  /** The report to send: the last one until it is acknowledged, else of all that is held. `returns` also closes. */
  report(returns: boolean, nowMs: number): CreditReport {
    if (returns) this.close();
    if (this.#sending !== null) return this.#sending.report;
    const calls = [...this.#held.values()];
    // The run object ends the group of a window that is over: nothing may join it any more, however late it comes.
    if ((this.#window.current?.waitsUntilMs ?? Infinity) <= nowMs) this.#window.flush();
    this.#lastNumber += 1;
    this.#sending = {
      calls,
      inFlight: new Set(calls.filter(({ ended }) => ended === null)),
      report: {
        creditId: this.creditId,
        number: this.#lastNumber,
        calls: calls.map((call) => creditedCall(call, nowMs)),
        returns,
      },
    };
    return this.#sending.report;
  }

  /**
   * Takes in the reply to a report; a second reply to the same changes nothing. Returns what has ended since the report
   * said that it was in flight: it is settled like any other attempt.
   */
  acknowledged(number: number, reply: CreditReportReply, nowMs: number): SingleSettlement[] {
    if (this.#sending?.report.number !== number) return [];
    const { calls, inFlight } = this.#sending;
    this.#sending = null;
    const settlements: SingleSettlement[] = [];
    for (const call of calls) {
      const { attemptId, amounts } = call.lease;
      this.#held.delete(attemptId);
      if (!inFlight.has(call)) continue;
      this.#ledger.settle(attemptId, amounts);
      this.#inFlight -= 1;
      if (call.ended === null) continue;
      const { atMs: _, ...ended } = call.ended;
      settlements.push({ attemptId, ...ended, stored: null });
    }
    if (reply.kind === "continue") this.#apply({ ...reply.terms, remainingNanoUsd: reply.remainingNanoUsd }, nowMs);
    else this.close();
    if (reply.kind === "ended") this.#end();
    return settlements;
  }

  /** The credit is gone, and with it what was not reported: the run object has charged, or will charge, all of it. */
  #end(): void {
    this.#isClosed = true;
    this.#isEnded = true;
    this.#held.clear();
  }

  #apply({ granted, permits, learned, remainingNanoUsd }: CreditTerms & Remaining, nowMs: number): void {
    // Where an upstream has billed more than was reserved, more is spent than was granted: then nothing starts.
    if (this.#ledger.setLimits(granted) !== null) this.close();
    this.#permits = permits;
    this.#runRemainingNanoUsd = remainingNanoUsd;
    for (const [upstream, facts] of Object.entries(learned)) this.#templates.adopt(upstream, facts, nowMs);
  }

  #join(nowMs: number, ageMs: number): HeldCall["window"] {
    const { group, position } = this.#window.join(nowMs, nowMs - Math.max(0, ageMs));
    if (this.#windows.current !== group) this.#windows = { current: group, number: this.#windows.number + 1 };
    return { group, number: this.#windows.number, position };
  }
}

function creditedCall({ callId, facts, onLost, lease, window, ended }: HeldCall, nowMs: number): CreditedCall {
  const { amounts, capTokens, capKind, startedAtMs } = lease;
  const end = ended === null ? null : endOf(ended, nowMs);
  const label = labelOf(window, nowMs);
  return { callId, facts, onLost, amounts, capTokens, capKind, startedAgoMs: nowMs - startedAtMs, label, ended: end };
}

function endOf({ atMs, ...ended }: NonNullable<HeldCall["ended"]>, nowMs: number): NonNullable<CreditedCall["ended"]> {
  return { ...ended, agoMs: nowMs - atMs };
}

function labelOf({ group, number, position }: HeldCall["window"], nowMs: number): CallLabel {
  const { id, openedAtMs, waitsUntilMs } = group;
  return { openedAgoMs: nowMs - openedAtMs, windowNumber: number, id, position, closesInMs: waitsUntilMs - nowMs };
}
