/**
 * Leased credit: a part of a run's budget and width inside which one instance of the gateway starts single calls by
 * itself. The instance reports them afterwards, many at a time.
 */
import type { CreditTerms } from "../../run/credit.ts";
import type { ModelRules } from "../../providers/target.ts";
import type { Remaining } from "./types.ts";

export type OpenCreditReply = {
  /** null = no credit: other calls wait, or too little is left. */
  terms: (CreditTerms & Remaining) | null;
  /** What the instance needs to admit calls as the run does. */
  rules: ModelRules;
  windowMs: number;
};

/** `settles`: the object has applied the settlements that came with the report; absent = it has not read them. */
export type CreditReportReply = { settles?: true } & (
  | ({ kind: "continue"; terms: CreditTerms } & Remaining)
  /** The run needs what is left: start nothing more, and return the credit. */
  | { kind: "recalled" }
  /** The credit was returned, or it expired and was charged. */
  | { kind: "ended" }
);
