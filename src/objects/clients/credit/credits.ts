/**
 * The credits that this instance of the gateway holds, one per run. An instance asks for credit once it has made several
 * calls of a run within a second; then calls start here, and are reported every CREDIT_REPORT_MS. The request that keeps
 * a credit does so in its `waitUntil`, and hands over to a later one in time. Whoever reads or changes the run from this
 * instance returns the credit first.
 */
import type { Amounts } from "../../../run/money/ledger.ts";
import type { CallFacts, CallRules } from "../../../call.ts";
import type { CallLabel, WindowGroup } from "../../../run/leases/concurrency-window.ts";
import type { CreditReport, CreditRequest } from "../../../run/credit.ts";
import type { Target } from "../../../run/leases/shard.ts";
import {
  ARRIVAL_LOOK_MS,
  CREDIT_AFTER_CALLS,
  CREDIT_HANDOVER_MS,
  CREDIT_IDLE_MS,
  CREDIT_KEEPER_MS,
  CREDIT_REPORT_CALLS,
  CREDIT_REPORT_MS,
  CREDIT_RUNS_MAX,
  CREDIT_TTL_MS,
  CREDIT_UPSTREAMS_MAX,
  STOOD_STILL_MS_MIN,
  WINDOW_SLIDES_MAX,
} from "../../../limits.ts";
import type { Permit, SingleSettlement } from "../../methods/calls.ts";
import type { CreditReportReply, OpenCreditReply } from "../../methods/credit.ts";
import { CreditHolder, type Started } from "./holder.ts";

/** The run object, as far as credit needs it. Calls are retried while it restarts. */
export type CreditRun = {
  readonly runId: string;
  openCredit: (request: CreditRequest) => Promise<OpenCreditReply | null>;
  /** Takes along the settlements that wait in this instance. */
  reportCredit: (report: CreditReport) => Promise<CreditReportReply>;
  /** Whether there are any. */
  settlementsWait: () => boolean;
  /** Settles an attempt that the run object knows. */
  settle: (settlement: SingleSettlement) => unknown;
};

export type CreditDeps = {
  now: () => number;
  wait: (ms: number) => Promise<void>;
  random: () => number;
  newId: () => string;
};

type ModelRules = OpenCreditReply["rules"];

/** What a call needs to start here. `targetOf` null = the run object must decide on its model. */
export type CreditCall = {
  callId: string;
  /** Time since its Worker got it, ms; absent = it got it now. */
  ageMs?: number;
  facts: CallFacts;
  onLost: CallRules["onLost"];
  targetOf: (rules: ModelRules) => Target | null;
};

type Session = {
  holder: CreditHolder | null;
  rules: ModelRules | null;
  windowMs: number;
  isOpening: boolean;
  /** The credit that is being requested; null = none, or a request that reads the run has returned it already. */
  openingId: string | null;
  /** Credit is not requested before this time. */
  notBeforeMs: number;
  /** Starts of the latest calls that the run object has permitted, oldest first. */
  startsMs: number[];
  need: Amounts | null;
  upstreams: Set<string>;
  /** When the run object's newest coalescing window, that this instance knows of, opened. */
  windowOpenedAtMs: number;
  /** When the latest call arrived that the run object has placed in its windows: each keeps its window open. */
  arrivedAtMs: number;
  /** True once calls start here: then windows are kept here, for calls that the run object starts, too. */
  isUsed: boolean;
  usedAtMs: number;
  acknowledgedAtMs: number;
  /** Whether the run object settles what comes with a report: its latest reply says so. */
  takesSettlements: boolean;
  /** The request that reports. */
  keeper: { seenMs: number; sinceMs: number } | null;
};

export class InstanceCredits {
  readonly #deps: CreditDeps;
  readonly #sessions = new Map<string, Session>();

  constructor(deps: CreditDeps) {
    this.#deps = deps;
  }

  /** Starts a call inside this instance's credit; null = the run object must be asked for a permit. */
  start(
    run: CreditRun,
    call: CreditCall,
    waitUntil: (promise: Promise<unknown>) => void,
  ): (Started & { remainingNanoUsd: number | null }) | null {
    const session = this.#sessions.get(run.runId);
    const holder = session?.holder ?? null;
    if (session === undefined || holder === null || session.rules === null) return null;
    const nowMs = this.#deps.now();
    // Calls that arrived together belong to one group: credit is used from the end of the run object's window on.
    if (!session.isUsed && nowMs - (call.ageMs ?? 0) < windowCloseMs(session)) {
      session.arrivedAtMs = nowMs;
      return null;
    }
    // The run object may have taken the credit back, if it has not heard of this instance for long.
    if (nowMs - session.acknowledgedAtMs > CREDIT_TTL_MS / 2) return null;
    const target = call.targetOf(session.rules);
    const started = target === null ? null : holder.start({ ...call, target }, nowMs);
    if (started === null) return null;
    session.isUsed = true;
    session.usedAtMs = nowMs;
    this.#ensureKept(run, session, waitUntil);
    if (holder.heldCount >= CREDIT_REPORT_CALLS && !holder.isReporting) waitUntil(this.#reportEarly(run, session));
    return { ...started, remainingNanoUsd: holder.remainingNanoUsd };
  }

  /** The place of a call that the run object starts in the windows of this instance; null = the object keeps them. */
  place(runId: string, ageMs: number): { label: CallLabel & { creditId: string }; group: WindowGroup } | null {
    const session = this.#sessions.get(runId);
    if (session === undefined) return null;
    if (session.holder === null || !session.isUsed) {
      noteAsked(session, ageMs, this.#deps.now());
      return null;
    }
    const { label, group } = session.holder.place(ageMs, this.#deps.now());
    return { label: { ...label, creditId: session.holder.creditId }, group };
  }

  /** The run object has permitted a call: requests credit if there are many. */
  permitted(run: CreditRun, permit: Permit, waitUntil: (promise: Promise<unknown>) => void): void {
    const nowMs = this.#deps.now();
    const session = this.#sessionOf(run.runId);
    session.windowOpenedAtMs = Math.max(session.windowOpenedAtMs, permit.windowOpenedAtMs ?? 0);
    session.arrivedAtMs = Math.max(session.arrivedAtMs, nowMs - permit.queuedMs);
    session.need = largest(session.need, permit.reserved);
    if (session.upstreams.size < CREDIT_UPSTREAMS_MAX) session.upstreams.add(permit.lease.upstream);
    session.startsMs.push(nowMs);
    if (session.startsMs.length > CREDIT_AFTER_CALLS) session.startsMs.shift();
    const isBusy =
      session.startsMs.length === CREDIT_AFTER_CALLS && nowMs - (session.startsMs[0] ?? 0) <= CREDIT_IDLE_MS;
    if (!isBusy || session.holder !== null || session.isOpening || nowMs < session.notBeforeMs) return;
    session.isOpening = true;
    waitUntil(this.#open(run, session, waitUntil));
  }

  /** True if this instance holds credit of the run. */
  has(runId: string): boolean {
    const session = this.#sessions.get(runId);
    return session !== undefined && (session.holder !== null || session.openingId !== null);
  }

  /** True if the run object does not know of this attempt yet. */
  holds(runId: string, attemptId: string): boolean {
    return this.#sessions.get(runId)?.holder?.holds(attemptId) === true;
  }

  /** Ends an attempt; null if the run object knows of it: then it is settled there. */
  end(runId: string, settlement: SingleSettlement): ReturnType<CreditHolder["end"]> {
    return this.#sessions.get(runId)?.holder?.end(settlement, this.#deps.now()) ?? null;
  }

  /** True if a settlement that waits in this instance leaves with the next report, which is due: nobody else need send it. */
  takesSettlements(runId: string): boolean {
    const session = this.#sessions.get(runId);
    if (session === undefined || session.holder === null || session.keeper === null) return false;
    if (session.holder.isClosed || !session.takesSettlements) return false;
    return this.#deps.now() - session.keeper.seenMs < CREDIT_HANDOVER_MS;
  }

  /** Starts nothing more inside the credit, which is returned soon: its upstream has refused a call. */
  stop(runId: string): void {
    this.#sessions.get(runId)?.holder?.close();
  }

  /** Makes every call that this instance has started known to the run object. */
  async flush(run: CreditRun): Promise<void> {
    const session = this.#sessions.get(run.runId);
    const holder = session?.holder ?? null;
    if (session === undefined || holder === null) return;
    // The first report may have been written before the call in question.
    for (let reports = 0; reports < 2 && session.holder === holder; reports++) await this.#report(run, session, false);
  }

  /** Returns the credit: the run object then knows of every call. Costs nothing if there is none. */
  async giveBack(run: CreditRun): Promise<void> {
    const session = this.#sessions.get(run.runId);
    if (session === undefined) return;
    const { holder, openingId } = session;
    if (openingId !== null) {
      session.openingId = null;
      await run.reportCredit(unused(openingId));
    }
    if (holder === null) return;
    holder.close();
    while (session.holder === holder) await this.#report(run, session, true);
  }

  async #open(run: CreditRun, session: Session, waitUntil: (promise: Promise<unknown>) => void): Promise<void> {
    const { now, random, newId } = this.#deps;
    try {
      const upstreams = [...session.upstreams];
      const { need } = session;
      session.upstreams = new Set();
      session.need = null;
      session.notBeforeMs = now() + CREDIT_IDLE_MS;
      const creditId = newId();
      if (need === null) return;
      session.openingId = creditId;
      const reply = await run.openCredit({ creditId, need, upstreams });
      if (reply === null || reply.terms === null) return;
      // A request that reads the run has returned it meanwhile; that may have overtaken this one.
      if (session.openingId !== creditId) return void (await run.reportCredit(unused(creditId)));
      const { terms, rules, windowMs } = reply;
      session.holder = new CreditHolder({ creditId, terms, upstreams, windowMs, random }, now());
      Object.assign(session, {
        rules,
        windowMs,
        isUsed: false,
        usedAtMs: now(),
        acknowledgedAtMs: now(),
        takesSettlements: false,
        keeper: null,
      });
      this.#ensureKept(run, session, waitUntil);
    } catch {
      // Without credit, every call asks the run object. One that was opened there expires.
    } finally {
      session.isOpening = false;
      session.openingId = null;
    }
  }

  #ensureKept(run: CreditRun, session: Session, waitUntil: (promise: Promise<unknown>) => void): void {
    const nowMs = this.#deps.now();
    const { keeper } = session;
    if (keeper !== null && nowMs - keeper.seenMs < CREDIT_HANDOVER_MS && nowMs - keeper.sinceMs < CREDIT_KEEPER_MS)
      return;
    waitUntil(this.#keep(run, session));
  }

  /** Reports until the credit has ended or another request does. Returns the credit when no call has used it for long. */
  async #keep(run: CreditRun, session: Session): Promise<void> {
    const { now, wait } = this.#deps;
    const { holder } = session;
    const own = { seenMs: now(), sinceMs: now() };
    session.keeper = own;
    if (holder === null) return;
    while (session.holder === holder && session.keeper === own) {
      const beforeMs = now();
      await wait(CREDIT_REPORT_MS);
      // Calls that arrived while the instance stood still come next. They belong to windows that a report would close.
      if (now() - beforeMs > CREDIT_REPORT_MS + STOOD_STILL_MS_MIN) await wait(ARRIVAL_LOOK_MS);
      own.seenMs = now();
      const isIdle = own.seenMs - session.usedAtMs >= CREDIT_IDLE_MS;
      // No request has taken over in time: the platform is about to end this one.
      const isOver = own.seenMs - own.sinceMs >= CREDIT_KEEPER_MS + CREDIT_IDLE_MS;
      try {
        if (isIdle || isOver || holder.isClosed) await this.giveBack(run);
        else if (holder.heldCount > 0 || run.settlementsWait()) await this.#report(run, session, false);
      } catch {
        // The run object cannot be reached. What is not reported before the credit expires is charged.
        if (own.seenMs - session.acknowledgedAtMs > CREDIT_TTL_MS) this.#forget(session, holder);
      }
    }
  }

  /** If this report fails, the request that keeps the credit repeats it. */
  async #reportEarly(run: CreditRun, session: Session): Promise<void> {
    await this.#report(run, session, false).catch(() => undefined);
  }

  async #report(run: CreditRun, session: Session, returns: boolean): Promise<void> {
    const { holder } = session;
    if (holder === null) return;
    const report = holder.report(returns, this.#deps.now());
    const reply = await run.reportCredit(report);
    const settlements = holder.acknowledged(report.number, reply, this.#deps.now());
    session.acknowledgedAtMs = this.#deps.now();
    session.takesSettlements = reply.settles === true;
    if (holder.isEnded) this.#forget(session, holder);
    for (const settlement of settlements) run.settle(settlement);
  }

  #forget(session: Session, holder: CreditHolder): void {
    if (session.holder !== holder) return;
    holder.close();
    session.holder = null;
    session.startsMs = [];
    session.notBeforeMs = this.#deps.now() + CREDIT_REPORT_MS;
  }

  #sessionOf(runId: string): Session {
    const known = this.#sessions.get(runId);
    if (known !== undefined) return known;
    if (this.#sessions.size >= CREDIT_RUNS_MAX) this.#dropOldest();
    const session: Session = {
      ...{
        holder: null,
        rules: null,
        windowMs: 0,
        isOpening: false,
        openingId: null,
        notBeforeMs: 0,
        startsMs: [],
        need: null,
      },
      ...{
        upstreams: new Set<string>(),
        windowOpenedAtMs: 0,
        arrivedAtMs: 0,
        isUsed: false,
        usedAtMs: 0,
        acknowledgedAtMs: 0,
        takesSettlements: false,
        keeper: null,
      },
    };
    this.#sessions.set(runId, session);
    return session;
  }

  #dropOldest(): void {
    for (const [runId, { holder, isOpening }] of this.#sessions) {
      if (holder !== null || isOpening) continue;
      this.#sessions.delete(runId);
      return;
    }
  }
}

/** A call is about to be the run object's: it is in the newest window there or opens one, before its permit says so. */
function noteAsked(session: Session, ageMs: number, nowMs: number): void {
  if (nowMs - ageMs >= windowCloseMs(session)) session.windowOpenedAtMs = nowMs;
  session.arrivedAtMs = nowMs;
}

/** When the run object's newest window closes, as far as this instance knows. */
function windowCloseMs({ windowOpenedAtMs, arrivedAtMs, windowMs }: Session): number {
  const lastMs = windowOpenedAtMs + WINDOW_SLIDES_MAX * windowMs;
  return Math.min(Math.max(windowOpenedAtMs, arrivedAtMs) + windowMs, lastMs);
}

/** The report that returns a credit in which nothing was started. */
function unused(creditId: string): CreditReport {
  return { creditId, number: 1, calls: [], returns: true };
}

/** The larger amount of each dimension. */
function largest(a: Amounts | null, b: Amounts): Amounts {
  if (a === null) return b;
  return {
    usd: Math.max(a.usd, b.usd),
    calls: Math.max(a.calls, b.calls),
    prompt_tokens: Math.max(a.prompt_tokens, b.prompt_tokens),
    completion_tokens: Math.max(a.completion_tokens, b.completion_tokens),
    new_tokens: Math.max(a.new_tokens, b.new_tokens),
  };
}
