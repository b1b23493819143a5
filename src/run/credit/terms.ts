/** What a run and an instance of the gateway that holds credit exchange. Times are ages: clocks of machines differ. */
import type { Amounts, Limits } from "../money/ledger.ts";
import type { CallFacts, CallRules, CapKind, Outcome } from "../../call.ts";
import type { RateSample } from "../../gate/wire.ts";
import type { CallLabel } from "../leases/concurrency-window.ts";
import type { LearnedTemplates } from "../learned/templates.ts";

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
