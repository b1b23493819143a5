/** A run as a gate knows it: what it reported last, and what it holds. */
import type { Amount } from "../started.ts";
import { NO_AMOUNT } from "../started.ts";
import { WORK_CLASSES, type WorkClass } from "../wire.ts";

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
  /** Its place among the runs that wait for the next permit; null = it does not. */
  ticket: number | null;
  /** It has its turn, and has started nothing since. */
  isAtTurn: boolean;
  /** When its last grant expires. */
  grantUntilMs: number;
  /** Until then it counts as one that comes back for what it waits for. */
  punctualUntilMs: number;
  /** Whether that time has not passed, as far as the gate has looked. */
  isPunctual: boolean;
  seenMs: number;
  /** When it is forgotten, if it does not report. */
  forgetMs: number;
};

export function newRun(id: string, instance: string, nowMs: number): Run {
  const claim = (): Claim => ({
    waiting: 0,
    unmet: 0,
    call: callOf(0, 0),
    served: 0,
    paid: { calls: 0, callMs: 0 },
  });
  return {
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
    ticket: null,
    isAtTurn: false,
    grantUntilMs: nowMs,
    punctualUntilMs: nowMs,
    isPunctual: false,
    seenMs: nowMs,
    forgetMs: nowMs,
  };
}

export function waitingOf({ claims }: Pick<Run, "claims">): number {
  return claims.interactive.waiting + claims.standard.waiting + claims.batch.waiting;
}

/** Whether nothing of it waits, is in flight, or may start without another exchange. */
export function isIdle(run: Run): boolean {
  return run.inFlight === 0 && run.permits === 0 && run.outstanding.requests < 1 && waitingOf(run) === 0;
}

/** What a call costs, in the measure of the run. */
export function callOf(tokens: number, inputTokens: number): Amount {
  const input = Math.min(tokens, inputTokens);
  return { requests: 1, tokens, inputTokens: input, outputTokens: tokens - input };
}

/** The most urgent class that a run has waiting; null = nothing waits. */
export function urgentClassOf({ claims }: Pick<Run, "claims">): WorkClass | null {
  return WORK_CLASSES.find((name) => claims[name].waiting > 0) ?? null;
}
