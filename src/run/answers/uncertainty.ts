/**
 * How far a team of answers can be trusted, by a fixed formula over their texts: how sure each is of itself, whether it
 * names evidence, whether it speaks of contradictions. Ratios are over all members; those that failed count as unsure.
 */
import { UNCERTAINTY_EVIDENCE_MAX, UNCERTAINTY_TEXT_CHARS } from "../../limits.ts";
import type { Member } from "./member.ts";

/** What each ratio adds to an uncertainty; all in [0, 1]. */
export type UncertaintyWeights = {
  intra: { failed: number; low_confidence: number; no_evidence: number; contradiction: number };
  inter: { conflict: number; confidence_spread: number; failed: number; no_evidence: number };
  system: { intra: number; inter: number; failed: number };
};

export const DEFAULT_WEIGHTS: UncertaintyWeights = {
  intra: { failed: 0.38, low_confidence: 0.26, no_evidence: 0.2, contradiction: 0.16 },
  inter: { conflict: 0.42, confidence_spread: 0.28, failed: 0.2, no_evidence: 0.1 },
  system: { intra: 0.45, inter: 0.35, failed: 0.2 },
};

export type UncertaintySpec = { strategy: "uncertainty"; weights: UncertaintyWeights };

export type UncertaintyResult = {
  strategy: "uncertainty";
  verdict: "trusted" | "partial" | "untrusted";
  confidence: number;
  uncertainty: { intra: number; inter: number; system: number };
  signals: string[];
  explanation: string;
};

/** The confidence of an answer that states none. */
const CONFIDENCE_DEFAULT = 0.5;
const CONFIDENCE = /\bCONFIDENCE"?:[ \t*]{0,8}(\d{1,3}(?:\.\d{1,6})?|\.\d{1,6})[ \t]?(%?)/i;
const EVIDENCE_LINE = /\bEVIDENCE:([^\n]{1,4000})/gi;
/** The end of a reference to a line of a file, and what comes before it: a long word must not be read from each letter. */
const LINE_NUMBER = /:\d{1,7}\b/g;
const FILE_NAME_END = /\w\.\w{1,8}$/;
const FILE_NAME_END_CHARS = 10;
const CONTRADICTION = /\b(?:contradict\w{0,9}|inconsistent|inconsistency|inconsistencies|self-contradictory)\b/i;
const CONFLICT = /\b(?:conflict\w{0,4}|disagree\w{0,6}|incompatible|dispute[ds]?)\b/i;

type Sums = { members: number; failed: number; confidence: number; squares: number } & Record<
  "noEvidence" | "contradiction" | "conflict",
  number
>;

export class Uncertainty {
  readonly #weights: UncertaintyWeights;
  readonly #sums: Sums = {
    members: 0,
    failed: 0,
    confidence: 0,
    squares: 0,
    noEvidence: 0,
    contradiction: 0,
    conflict: 0,
  };

  constructor({ weights }: Pick<UncertaintySpec, "weights">) {
    this.#weights = weights;
  }

  add({ completed: hasAnswer, text: whole }: Member): void {
    const sums = this.#sums;
    // A member that said nothing has not answered, whatever its call ended as.
    const completed = hasAnswer && whole.trim() !== "";
    const text = completed ? whole.slice(0, UNCERTAINTY_TEXT_CHARS) : "";
    const confidence = confidenceIn(text);
    sums.members += 1;
    if (!completed) sums.failed += 1;
    sums.confidence += confidence;
    sums.squares += confidence * confidence;
    if (evidenceIn(text) === 0) sums.noEvidence += 1;
    if (CONTRADICTION.test(text)) sums.contradiction += 1;
    if (CONFLICT.test(text)) sums.conflict += 1;
  }

  result(): UncertaintyResult {
    const { members, failed } = this.#sums;
    if (members === 0) return emptyResult();
    const ratios = ratiosOf(this.#sums);
    const uncertainty = uncertaintyOf(ratios, this.#weights);
    const { system } = uncertainty;
    const verdict = failed === members ? "untrusted" : system >= 0.6 || failed > 0 ? "partial" : "trusted";
    const confidence = verdict === "untrusted" ? 0.1 : verdict === "partial" ? 1 - system : 1 - 0.6 * system;
    const signals = signalsOf(ratios, uncertainty);
    const { intra, inter } = uncertainty;
    const shown = { intra: rounded(intra), inter: rounded(inter), system: rounded(system) };
    const explanation =
      `${members - failed} of ${members} members completed; uncertainty ${shown.system} ` +
      `(within answers ${shown.intra}, between answers ${shown.inter})` +
      (signals.length === 0 ? "" : `; signals: ${signals.join(", ")}`);
    return {
      strategy: "uncertainty",
      verdict,
      confidence: rounded(clamped(confidence)),
      uncertainty: shown,
      signals,
      explanation,
    };
  }
}

type Ratios = Record<"failed" | "lowConfidence" | "noEvidence" | "contradiction" | "conflict" | "spread", number>;

function ratiosOf({ members, failed, confidence, squares, noEvidence, contradiction, conflict }: Sums): Ratios {
  const mean = confidence / members;
  const deviation = Math.sqrt(Math.max(0, squares / members - mean * mean));
  return {
    failed: failed / members,
    lowConfidence: clamped(1 - mean),
    noEvidence: noEvidence / members,
    contradiction: contradiction / members,
    conflict: conflict / members,
    // Half is the widest deviation of numbers in [0, 1].
    spread: clamped(deviation / 0.5),
  };
}

function uncertaintyOf(ratios: Ratios, weights: UncertaintyWeights): UncertaintyResult["uncertainty"] {
  const { failed, lowConfidence, noEvidence, contradiction, conflict, spread } = ratios;
  const { intra: own, inter: between, system: all } = weights;
  const intra = clamped(
    own.failed * failed +
      own.low_confidence * lowConfidence +
      own.no_evidence * noEvidence +
      own.contradiction * contradiction,
  );
  const inter = clamped(
    between.conflict * conflict +
      between.confidence_spread * spread +
      between.failed * failed +
      between.no_evidence * noEvidence,
  );
  return { intra, inter, system: clamped(all.intra * intra + all.inter * inter + all.failed * failed) };
}

function signalsOf(
  { failed, noEvidence }: Ratios,
  { intra, inter, system }: UncertaintyResult["uncertainty"],
): string[] {
  const signals: [string, boolean][] = [
    ["high_intra_uncertainty", intra >= 0.55],
    ["high_inter_disagreement", inter >= 0.55],
    ["high_system_uncertainty", system >= 0.6],
    ["teammate_failures", failed >= 0.3],
    ["insufficient_evidence", noEvidence >= 0.5],
  ];
  return signals.filter(([, isSet]) => isSet).map(([name]) => name);
}

function emptyResult(): UncertaintyResult {
  return {
    strategy: "uncertainty",
    verdict: "untrusted",
    confidence: 0.1,
    uncertainty: { intra: 1, inter: 1, system: 1 },
    signals: ["no_member_results"],
    explanation: "no member has a result",
  };
}

/** What an answer says of its confidence, in [0, 1]: `CONFIDENCE: 0.8`, or `80%`, or `"confidence": 0.8` in JSON. */
function confidenceIn(text: string): number {
  const [, number, percent] = CONFIDENCE.exec(text) ?? [];
  if (number === undefined) return CONFIDENCE_DEFAULT;
  const stated = Number(number);
  return clamped(percent === "%" || stated > 1 ? stated / 100 : stated);
}

/** Pieces of evidence in an answer: what follows `EVIDENCE:`, split at `;` and `,`, and references such as `src/a.ts:12`. */
function evidenceIn(text: string): number {
  let found = 0;
  for (const [, line = ""] of text.matchAll(EVIDENCE_LINE)) {
    found += line.split(/[;,]/).filter((piece) => piece.trim() !== "").length;
    if (found >= UNCERTAINTY_EVIDENCE_MAX) return UNCERTAINTY_EVIDENCE_MAX;
  }
  for (const { index } of text.matchAll(LINE_NUMBER)) {
    if (!FILE_NAME_END.test(text.slice(Math.max(0, index - FILE_NAME_END_CHARS), index))) continue;
    found += 1;
    if (found >= UNCERTAINTY_EVIDENCE_MAX) break;
  }
  return found;
}

function clamped(ratio: number): number {
  return Math.min(1, Math.max(0, ratio));
}

function rounded(ratio: number): number {
  return Math.round(ratio * 10_000) / 10_000;
}
