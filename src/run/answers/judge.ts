/** `judge`: a model says by a rubric how far the answers of a group can be trusted. */
import { jsonInAnswer } from "./answer-json.ts";
import { DEFAULT_WEIGHTS, Uncertainty, type UncertaintyResult } from "./uncertainty.ts";
import type { Member } from "./member.ts";
import { ShownAnswers } from "./answers.ts";
import type { CombiningCalls, CombiningSettings } from "./calls.ts";

export type JudgeSpec = CombiningSettings & { strategy: "judge"; rubric: string; charsMax: number };

/** `verdict` and `confidence` are null if the judge failed. The measures and `formula_verdict` are those of `uncertainty`. */
export type JudgeResult = Pick<UncertaintyResult, "uncertainty" | "signals"> & {
  strategy: "judge";
  verdict: UncertaintyResult["verdict"] | null;
  confidence: number | null;
  explanation: string | null;
  formula_verdict: UncertaintyResult["verdict"];
};

const VERDICTS = ["trusted", "partial", "untrusted"] as const;

const SCHEMA = {
  type: "object",
  properties: {
    verdict: { type: "string", enum: [...VERDICTS] },
    confidence: { type: "number", minimum: 0, maximum: 1 },
    explanation: { type: "string" },
  },
  required: ["verdict", "confidence", "explanation"],
  additionalProperties: false,
};

export class Judge {
  readonly #spec: JudgeSpec;
  readonly #answers: ShownAnswers;
  readonly #measures = new Uncertainty({ weights: DEFAULT_WEIGHTS });

  constructor(spec: JudgeSpec, count: number) {
    this.#spec = spec;
    this.#answers = new ShownAnswers(count, spec.charsMax);
  }

  add(member: Member): void {
    this.#answers.add(member);
    this.#measures.add(member);
  }

  async result(calls: CombiningCalls): Promise<JudgeResult> {
    const { verdict, confidence, explanation, uncertainty, signals } = this.#measures.result();
    const measured = { strategy: "judge", uncertainty, signals, formula_verdict: verdict } as const;
    // There is nothing to judge.
    if (this.#answers.completed === 0) return { ...measured, verdict, confidence, explanation };
    const [text] = await calls.make("judge", [{ prompt: this.#prompt(), schema: SCHEMA }], this.#spec);
    const judged = text == null ? null : judgementIn(text);
    if (judged === null) return { ...measured, verdict: null, confidence: null, explanation: null };
    // An answer that is missing was not found to be right.
    const isPartial = judged.verdict === "trusted" && this.#answers.failed > 0;
    return { ...measured, ...judged, verdict: isPartial ? "partial" : judged.verdict };
  }

  #prompt(): string {
    const task =
      "Judge the answers below by the rubric. `trusted`: they can be used as they are. `partial`: some of them can. " +
      "`untrusted`: they cannot. `confidence`: how sure you are, from 0 to 1. `explanation`: why, in at most three sentences.";
    return `${task}\n\n# Rubric\n${this.#spec.rubric}\n\n# Answers\n${this.#answers.text}`;
  }
}

type Judgement = { verdict: (typeof VERDICTS)[number]; confidence: number; explanation: string };

/** The judgement in an answer that was checked against the schema. */
function judgementIn(text: string): Judgement | null {
  const value = jsonInAnswer(text);
  if (typeof value !== "object" || value === null) return null;
  const { verdict, confidence, explanation } = value as Partial<Record<keyof Judgement, unknown>>;
  const known = VERDICTS.find((each) => each === verdict);
  if (known === undefined || typeof confidence !== "number" || typeof explanation !== "string") return null;
  return { verdict: known, confidence, explanation };
}
