/**
 * The runs that a gate knows. All of it is in memory; a restart forgets it. What all of them have together is kept in sums, so
 * that an exchange costs the same beside ten runs and beside thousands: a run is taken out of the sums, changes, and is put back.
 */
import { GATE_RUN_TTL_MS, GATE_RUNS_MAX, GATE_VISITS_MAX } from "../../limits.ts";
import { callOf, isIdle, newRun, urgentClassOf, type Run } from "./run.ts";
import { NO_AMOUNT, type Amount } from "../started.ts";
import { Sums } from "./sums.ts";
import { Tickets } from "./tickets.ts";
import { WORK_CLASSES, type GateReport } from "../wire.ts";

/** What a report adds to what was known. */
export type News = {
  run: Run;
  started: Amount;
  succeeded: number;
  /** False for a report that was received before. */
  isNew: boolean;
};

export class Registry {
  /** Of all runs but the one that was taken out. */
  readonly sums = new Sums();
  /** Who is next to get a permit. */
  readonly tickets = new Tickets();
  readonly #runs = new Map<string, Run>();
  /** Runs that nothing depends on, longest idle first: they make room for others. */
  readonly #idle = new Set<Run>();
  #next: Iterator<Run> | null = null;
  /** Runs that were looked at one by one since the begin: what an exchange costs. */
  visits = 0;

  get size(): number {
    return this.#runs.size;
  }

  get(id: string): Run | undefined {
    return this.#runs.get(id);
  }

  /** All runs; each counts as a visit. */
  *all(): Generator<Run> {
    for (const run of this.#runs.values()) {
      this.visits += 1;
      yield run;
    }
  }

  delete(id: string): void {
    const run = this.takeOut(id);
    if (run === null) return;
    this.#runs.delete(id);
    this.tickets.end(run);
  }

  /** Takes a run out of the sums, so that it may change; null = it is not known. It must be put back. */
  takeOut(id: string): Run | null {
    const run = this.#runs.get(id);
    if (run === undefined) return null;
    this.sums.add(run, -1);
    this.#idle.delete(run);
    return run;
  }

  /** Puts a run back that has changed, or is new. */
  putBack(run: Run, nowMs: number): void {
    run.isPunctual = run.punctualUntilMs > nowMs;
    this.#runs.set(run.id, run);
    this.sums.add(run, 1);
    if (isIdle(run)) this.#idle.add(run);
  }

  /** A run that is not known; null = the gate knows as many as it can, and each of them has something to do. */
  admit({ run: id, instance }: Pick<GateReport, "run" | "instance">, nowMs: number): Run | null {
    if (this.#runs.size >= GATE_RUNS_MAX) {
      const [idle] = this.#idle;
      if (idle === undefined) return null;
      this.delete(idle.id);
    }
    return newRun(id, instance, nowMs);
  }

  /** Takes a report of a run in that is out of the sums. */
  take(run: Run, report: GateReport, nowMs: number): News {
    const { instance, number, started, succeeded } = report;
    if (run.number === 0 || run.instance !== instance) {
      // Counters of an instance that a gate has known before, and has forgotten since, say nothing about what was started since.
      const isFresh = report.epoch === 0;
      run.counters = isFresh ? { requests: 0, tokens: 0, succeeded: 0 } : { ...started, succeeded };
      run.instance = instance;
      run.number = 0;
    }
    const isNew = number > run.number;
    const before = run.counters;
    const requests = Math.max(0, started.requests - before.requests);
    const tokens = Math.max(0, started.tokens - before.tokens);
    const news = {
      run,
      started: amountOf(requests, tokens, run),
      succeeded: Math.max(0, succeeded - before.succeeded),
      isNew,
    };
    if (requests > 0) run.isAtTurn = false;
    run.counters = { ...started, succeeded };
    run.number = Math.max(run.number, number);
    run.weight = report.weight > 0 ? report.weight : 1;
    run.inFlight = report.inFlight;
    run.seenMs = nowMs;
    run.forgetMs = nowMs + GATE_RUN_TTL_MS;
    for (const name of WORK_CLASSES) {
      const { waiting, tokensPerCall, inputTokensPerCall = tokensPerCall / 2 } = report.classes[name];
      const claim = run.claims[name];
      claim.waiting = waiting;
      claim.unmet = waiting;
      if (waiting > 0 || tokensPerCall > 0) claim.call = callOf(tokensPerCall, inputTokensPerCall);
    }
    run.workClass = urgentClassOf(run) ?? run.workClass;
    return news;
  }

  /**
   * Forgets runs that have not come back, and frees the grants that have expired. Each call looks at the next of the runs only,
   * so that among thousands one is found a few dozen exchanges late.
   */
  expire(nowMs: number, visitsMax = GATE_VISITS_MAX): void {
    for (let left = Math.min(visitsMax, this.#runs.size); left > 0; left--) {
      this.#next ??= this.#runs.values();
      let next = this.#next.next();
      if (next.done === true) {
        this.#next = this.#runs.values();
        next = this.#next.next();
      }
      if (next.done === true) return;
      this.visits += 1;
      this.#expire(next.value, nowMs);
    }
  }

  #expire(run: Run, nowMs: number): void {
    if (run.forgetMs <= nowMs) return this.delete(run.id);
    const isOver = run.grantUntilMs <= nowMs && (run.permits > 0 || run.outstanding.requests > 0);
    const isLate = run.isPunctual && run.punctualUntilMs <= nowMs;
    if (!isOver && !isLate) return;
    this.takeOut(run.id);
    if (isOver) {
      run.outstanding = { ...NO_AMOUNT };
      run.permits = 0;
    }
    if (isLate) this.tickets.end(run);
    this.putBack(run, nowMs);
  }
}

/** What was started, with the tokens split as those of the calls that it reported last. */
function amountOf(requests: number, tokens: number, run: Run): Amount {
  const { call } = run.claims[run.workClass];
  const inputShare = call.tokens > 0 ? call.inputTokens / call.tokens : 0.5;
  return { requests, tokens, inputTokens: tokens * inputShare, outputTokens: tokens * (1 - inputShare) };
}
