/** The runs that a gate knows: what they reported last, and what they hold. All of it is in memory; a restart forgets it. */
import { GATE_RUN_TTL_MS, GATE_RUNS_MAX } from "../limits.ts";
import { NO_AMOUNT, type Amount } from "./started.ts";
import { WORK_CLASSES, type GateReport, type WorkClass } from "./wire.ts";

export type Claim = {
  waiting: number;
  /** Those of them that the last grant does not let start. */
  unmet: number;
  /** What one call costs, in the measure of the run. */
  call: Amount;
  /** Service that was received, in virtual time; see `share.ts`. */
  served: number;
  /** The calls of the last grant, and the capacity that each of them was counted as, ms. */
  paid: { calls: number; callMs: number };
};

export type Run = {
  readonly id: string;
  instance: string;
  /** Number of the last report that counted. */
  number: number;
  weight: number;
  claims: Record<WorkClass, Claim>;
  /** The most urgent class that it had waiting last: what its attempts in flight count as. */
  workClass: WorkClass;
  inFlight: number;
  counters: { requests: number; tokens: number; succeeded: number };
  /** Calls that it started while no rate was known, and since when they are counted. */
  unpaid: { calls: number; sinceMs: number };
  /** What its last grant lets it start, and has not been reported as started. */
  outstanding: Amount;
  /** Permits that it may be using, until its grant expires. */
  permits: number;
  /** When its last grant expires. */
  grantUntilMs: number;
  /** Until then it counts as one that comes back for what it waits for. */
  punctualUntilMs: number;
  seenMs: number;
};

/** What a report adds to what was known. */
export type News = {
  run: Run;
  started: Amount;
  succeeded: number;
  /** False for a report that was received before. */
  isNew: boolean;
};

export class Registry {
  readonly #runs = new Map<string, Run>();

  get size(): number {
    return this.#runs.size;
  }

  get(id: string): Run | undefined {
    return this.#runs.get(id);
  }

  all(): IterableIterator<Run> {
    return this.#runs.values();
  }

  delete(id: string): void {
    this.#runs.delete(id);
  }

  /** Takes a report in. */
  take(report: GateReport, nowMs: number): News {
    const { run: id, instance, number, started, succeeded } = report;
    const known = this.#runs.get(id);
    const run = known ?? this.#newRun(id, instance, nowMs);
    if (known === undefined || known.instance !== instance) {
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
    run.counters = { ...started, succeeded };
    run.number = Math.max(run.number, number);
    run.weight = report.weight > 0 ? report.weight : 1;
    run.inFlight = report.inFlight;
    run.seenMs = nowMs;
    for (const name of WORK_CLASSES) {
      const { waiting, tokensPerCall, inputTokensPerCall = tokensPerCall / 2 } = report.classes[name];
      const claim = run.claims[name];
      claim.waiting = waiting;
      claim.unmet = waiting;
      if (waiting > 0 || tokensPerCall > 0) claim.call = callOf(tokensPerCall, inputTokensPerCall);
    }
    run.workClass = WORK_CLASSES.find((name) => run.claims[name].waiting > 0) ?? run.workClass;
    return news;
  }

  /** Forgets runs that have not come back, and frees the grants that have expired. */
  expire(nowMs: number): void {
    for (const [id, run] of this.#runs) {
      if (run.seenMs + GATE_RUN_TTL_MS <= nowMs) this.#runs.delete(id);
      else if (run.grantUntilMs <= nowMs) {
        run.outstanding = { ...NO_AMOUNT };
        run.permits = 0;
      }
    }
  }

  /** Attempts in flight by the latest reports. */
  get inFlight(): number {
    let sum = 0;
    for (const run of this.#runs.values()) sum += run.inFlight;
    return sum;
  }

  #newRun(id: string, instance: string, nowMs: number): Run {
    if (this.#runs.size >= GATE_RUNS_MAX) this.#dropOldest();
    const claim = (): Claim => ({
      waiting: 0,
      unmet: 0,
      call: callOf(0, 0),
      served: 0,
      paid: { calls: 0, callMs: 0 },
    });
    const run: Run = {
      id,
      instance,
      number: 0,
      weight: 1,
      claims: { interactive: claim(), standard: claim(), batch: claim() },
      workClass: "standard",
      inFlight: 0,
      counters: { requests: 0, tokens: 0, succeeded: 0 },
      unpaid: { calls: 0, sinceMs: nowMs },
      outstanding: { ...NO_AMOUNT },
      permits: 0,
      grantUntilMs: nowMs,
      punctualUntilMs: nowMs,
      seenMs: nowMs,
    };
    this.#runs.set(id, run);
    return run;
  }

  #dropOldest(): void {
    let oldest: Run | null = null;
    for (const run of this.#runs.values()) if (oldest === null || run.seenMs < oldest.seenMs) oldest = run;
    if (oldest !== null) this.#runs.delete(oldest.id);
  }
}

export function waitingOf(run: Run): number {
  return WORK_CLASSES.reduce((sum, name) => sum + run.claims[name].waiting, 0);
}

function callOf(tokens: number, inputTokens: number): Amount {
  const input = Math.min(tokens, inputTokens);
  return { requests: 1, tokens, inputTokens: input, outputTokens: tokens - input };
}

/** What was started, with the tokens split as those of the calls that it reported last. */
function amountOf(requests: number, tokens: number, run: Run): Amount {
  const { call } = run.claims[run.workClass];
  const inputShare = call.tokens > 0 ? call.inputTokens / call.tokens : 0.5;
  return { requests, tokens, inputTokens: tokens * inputShare, outputTokens: tokens * (1 - inputShare) };
}
