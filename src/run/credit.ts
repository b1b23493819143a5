/**
 * The credits of a run: parts of its budget and width that instances of the gateway hold, to start single calls without
 * a call to the run object. What an instance has not reported is reserved here, so `spent + reserved <= limit` holds; its
 * permits count as calls in flight. First what a run and an instance exchange, with times as ages, because clocks of machines differ; then
 * what the run keeps.
 */
import type { CallFacts, CallRules, CapKind, Outcome } from "../call.ts";
import type { RateSample } from "../gate/wire.ts";
import type { CallLabel } from "./leases/concurrency-window.ts";
import type { LearnedTemplates } from "./learned/templates.ts";
import type { Amounts, Limits } from "./money/ledger.ts";

/** An instance's request for credit. */
export type CreditRequest = {
  creditId: string;
  /** The largest reservation of its latest calls: credit for a single call saves nothing. */
  need: Amounts;
  /** The upstreams of these calls: calls to others do not start inside the credit. */
  upstreams: string[];
};

/** What an instance may use until its next report. */
export type CreditTerms = {
  /** All that was added to the credit since it was opened, per dimension; null = the run has no limit there. It only rises. */
  granted: Limits;
  /** Calls that may be in flight without being reported. */
  permits: number;
  /** What is known of the templates of the credit's upstreams, by name. */
  learned: Record<string, LearnedTemplates>;
};

/** A call that was started inside the credit. */
export type CreditedCall = {
  callId: string;
  facts: CallFacts;
  onLost: CallRules["onLost"];
  amounts: Amounts;
  capTokens: number | null;
  capKind: CapKind;
  startedAgoMs: number;
  label: CallLabel;
  /** How it ended; null = it is in flight, and from now on an attempt of the run like any other. */
  ended: { outcome: Outcome; agoMs: number; samples?: Record<string, RateSample> } | null;
};

export type CreditReport = {
  creditId: string;
  /** Number of the report, from 1: a report that is repeated is applied once. */
  number: number;
  /** Calls that no earlier report named. */
  calls: CreditedCall[];
  /** True = the credit ends with this report: nothing will be started inside it. */
  returns: boolean;
};

export type Credit = {
  id: string;
  /** All that was added to it, in the dimensions that the run limits. */
  granted: Amounts;
  /** The part that no report has used: reserved in the run's ledger. */
  left: Amounts;
  /** Calls that the instance may have in flight without having reported them. */
  permits: number;
  upstreams: readonly string[];
  /** Number of the last report that was applied. */
  reports: number;
  /** The credit expires then without a report, and is charged. In memory only: a restart grants a new term. */
  expiresAtMs: number;
  /** True once the run needs it back. */
  isRecalled: boolean;
};

/** A credit as it is stored. */
export type StoredCredit = Omit<Credit, "expiresAtMs" | "isRecalled">;

export class Credits {
  readonly #credits = new Map<string, Credit>();
  #permits = 0;
  #hasChanged = false;

  get size(): number {
    return this.#credits.size;
  }

  /** Permits of all credits. */
  get permits(): number {
    return this.#permits;
  }

  get(id: string): Credit | undefined {
    return this.#credits.get(id);
  }

  all(): IterableIterator<Credit> {
    return this.#credits.values();
  }

  /** Permits of the credits that may call this upstream: each of them may be used there. */
  permitsAt(upstream: string): number {
    let permits = 0;
    for (const credit of this.#credits.values()) if (credit.upstreams.includes(upstream)) permits += credit.permits;
    return permits;
  }

  /** Adds or replaces a credit. */
  put(credit: Credit): void {
    this.#permits += credit.permits - (this.#credits.get(credit.id)?.permits ?? 0);
    this.#credits.set(credit.id, credit);
    this.#hasChanged = true;
  }

  remove(id: string): void {
    this.#permits -= this.#credits.get(id)?.permits ?? 0;
    if (this.#credits.delete(id)) this.#hasChanged = true;
  }

  /** Takes over credits from storage. Their instances may be alive, so each gets a new term. */
  restore(stored: readonly StoredCredit[], expiresAtMs: number): void {
    for (const credit of stored) this.put({ ...credit, expiresAtMs, isRecalled: false });
    this.#hasChanged = false;
  }

  /** The credits as rows, if they have changed since the last call; else null. */
  takeWrite(): StoredCredit[] | null {
    if (!this.#hasChanged) return null;
    this.#hasChanged = false;
    return [...this.#credits.values()].map(({ id, granted, left, permits, upstreams, reports }) => {
      return { id, granted, left, permits, upstreams, reports };
    });
  }

  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** When the first credit expires; null = there is none. */
  nextEndMs(): number | null {
    let earliest: number | null = null;
    for (const { expiresAtMs } of this.#credits.values()) earliest = Math.min(earliest ?? Infinity, expiresAtMs);
    return earliest;
  }

  /** Makes every instance return its credit with its next report. */
  recall(): void {
    for (const credit of this.#credits.values()) credit.isRecalled = true;
  }
}

/** The id of a credit's reservation in the ledger: none of an attempt, whose number follows a dot. */
export function reservationId(creditId: string): string {
  return `credit ${creditId}`;
}
