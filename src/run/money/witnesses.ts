/**
 * What runs teach each other about an upstream's templates. One run can make an upstream bill anything, so what one has seen
 * counts for itself at once, and for others when a run of another tree has seen it too. It fades, because upstreams
 * change, and because two runs may be of one mind.
 */
import { TEMPLATE_LIFE_MS, TEMPLATE_WITNESSES_MAX } from "../../limits.ts";
import { mergedFacts, type TemplateFacts } from "./template.ts";

/** What one tree of runs has seen of a template. `root` names the tree by its root run; "" = it is not known. */
export type Witness = TemplateFacts & { root: string; seenAtMs: number };

/** What a tree may believe, and what of it needs no report: others have stored it lately. */
export type Testimony = { believed: TemplateFacts | undefined; stored: TemplateFacts | undefined };

/** What the tree of `root` believes: the facts that two trees have seen, and all that it has seen itself. */
export function testimonyOf(witnesses: readonly Witness[], root: string, nowMs: number): Testimony {
  const believedWithin = (lifeMs: number): TemplateFacts | undefined => {
    const fresh = witnesses.filter(({ seenAtMs }) => nowMs - seenAtMs < lifeMs);
    const own = fresh.find((witness) => witness.root === root);
    const shared = sharedFacts(fresh);
    return own === undefined ? shared : mergedFacts(shared, factsOf(own));
  };
  // Reported again in the second half of its life, so that what is still seen does not fade.
  return { believed: believedWithin(TEMPLATE_LIFE_MS), stored: believedWithin(TEMPLATE_LIFE_MS / 2) };
}

/** The strongest facts that two witnesses agree on; undefined = fewer than two have seen the template. */
function sharedFacts(witnesses: readonly Witness[]): TemplateFacts | undefined {
  const leastTokens = second(witnesses, byLeast)?.leastTokens;
  const excessTokens = second(witnesses, byExcess)?.excessTokens;
  if (leastTokens === undefined || excessTokens === undefined) return undefined;
  const textRatio = second(judging(witnesses), byRatio)?.textRatio;
  return { leastTokens, excessTokens, ...(textRatio === undefined ? {} : { textRatio }) };
}

type Order = (a: TemplateFacts, b: TemplateFacts) => number;
const byLeast: Order = (a, b) => a.leastTokens - b.leastTokens;
const byExcess: Order = (a, b) => b.excessTokens - a.excessTokens;
const byRatio: Order = (a, b) => (b.textRatio ?? 0) - (a.textRatio ?? 0);

function judging(witnesses: readonly Witness[]): Witness[] {
  return witnesses.filter(({ textRatio }) => textRatio !== undefined);
}

function second(witnesses: readonly Witness[], order: Order): Witness | undefined {
  return [...witnesses].sort(order)[1];
}

/** The witnesses with the report of a tree, without what has faded. Of too many, those go that change no fact, oldest first. */
export function withReport(
  witnesses: readonly Witness[],
  root: string,
  facts: TemplateFacts,
  nowMs: number,
): Witness[] {
  const fresh = witnesses.filter(({ seenAtMs }) => nowMs - seenAtMs < TEMPLATE_LIFE_MS);
  const before = fresh.find((witness) => witness.root === root);
  const merged = { ...mergedFacts(before === undefined ? undefined : factsOf(before), facts), root, seenAtMs: nowMs };
  const all = [...fresh.filter((witness) => witness !== before), merged];
  if (all.length <= TEMPLATE_WITNESSES_MAX) return all;
  const decisive = new Set([
    ...[...all].sort(byLeast).slice(0, 2),
    ...[...all].sort(byExcess).slice(0, 2),
    ...judging(all).sort(byRatio).slice(0, 2),
  ]);
  const dropped = all.filter((witness) => !decisive.has(witness)).sort((a, b) => a.seenAtMs - b.seenAtMs)[0];
  return all.filter((witness) => witness !== dropped);
}

/** The facts that a witness has seen. */
export function factsOf({ leastTokens, excessTokens, textRatio }: Witness): TemplateFacts {
  return { leastTokens, excessTokens, ...(textRatio === undefined ? {} : { textRatio }) };
}
