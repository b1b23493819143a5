/**
 * Admission under an upstream whose template is not known for certain: with the cautious overhead while the budget is
 * loose, and at its end one attempt at a time with the settled overhead. So an unseen template causes one overrun at
 * most, however many calls wait, and no call is refused or cut because of a template that may not exist.
 */
import type { CallFacts } from "../../call.ts";
import { admit, budgetReason, type Admission, type AdmissionRules } from "./admit.ts";
import { ANY_TOKENS, withImageExcess } from "./estimate.ts";
import type { Ledger } from "./ledger.ts";
import type { Overhead } from "./template.ts";
import type { TokenPrice } from "./token-price.ts";

/** The template of an attempt. */
export type TemplateRules = {
  overhead: Overhead;
  /** True if an attempt with the same template is in flight in this run: its bill will show the template. */
  isInFlight: () => boolean;
};

/** As `admit`, with the template's overhead in place of the bounds' own. */
export function admitWithTemplate(
  facts: CallFacts,
  price: TokenPrice | null,
  ledger: Ledger,
  { overhead, isInFlight, ...rules }: AdmissionRules & TemplateRules,
): Admission {
  const { settledTokens, cautiousTokens, mayProbe, awaitsFacts = false } = overhead;
  const bounds = withImageExcess(rules.bounds ?? ANY_TOKENS, overhead);
  const admitWith = (tokens: number): Admission =>
    admit(facts, price, ledger, { ...rules, bounds: { ...bounds, fixedTokens: tokens, toolsTokens: tokens } });
  const { usd, prompt_tokens: promptTokens, new_tokens: newTokens } = ledger.limits;
  const promptBinds = (usd !== null && price !== null) || promptTokens !== null || newTokens !== null;
  // Other runs may know that headers of images lie here.
  const doubtsImages = awaitsFacts && (facts.mediaParts ?? 0) > 0 && overhead.imageExcessTokens === undefined;
  if (!promptBinds || (cautiousTokens === settledTokens && !doubtsImages)) return admitWith(settledTokens);
  const cautious = admitWith(cautiousTokens);
  const isWhole = cautious.kind !== "refuse" && cautious.capKind !== "budget";
  if (!doubtsImages && (isWhole || !mayProbe)) return cautious;
  const probe = admitWith(settledTokens);
  if (probe.kind !== "reserve" || (!awaitsFacts && !isInFlight())) return probe;
  const ofTokens = promptTokens === null ? "new_tokens" : "prompt_tokens";
  const dimension = usd !== null && price !== null ? "usd" : ofTokens;
  const reason = budgetReason("in_flight_budget_exhausted", dimension, probe.amounts, ledger);
  return { kind: "wait", capKind: probe.capKind, capTokens: probe.capTokens ?? Infinity, reason };
}
