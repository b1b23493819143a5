/** `vote` with `escalate`: where the votes decide nothing, another model gets the disagreement. */
import type { Member } from "./member.ts";
import { VoteCount, type Escalation, type VoteResult, type VoteSpec } from "./vote.ts";
import { ShownAnswers } from "./answers.ts";
import type { CombiningCalls } from "./calls.ts";

/** `escalated` null = the votes have decided, or the other model failed. */
export type EscalatedVote = VoteResult & { escalated: { to: string; output: string } | null };

export class VoteWithEscalation {
  readonly #votes: VoteCount;
  readonly #answers: ShownAnswers;
  readonly #escalation: Escalation;

  constructor(spec: VoteSpec & { escalate: Escalation }, count: number) {
    this.#votes = new VoteCount(spec);
    this.#answers = new ShownAnswers(count, spec.escalate.charsMax);
    this.#escalation = spec.escalate;
  }

  add(member: Member): void {
    this.#votes.add(member);
    this.#answers.add(member);
  }

  async result(calls: CombiningCalls): Promise<EscalatedVote> {
    const voted = this.#votes.result();
    if (voted.decided || this.#answers.completed === 0) return { ...voted, escalated: null };
    const { model, prompt } = this.#escalation;
    const counts = voted.counts.map(({ answer, votes }) => `- ${votes}: ${JSON.stringify(answer)}`).join("\n");
    const call = { prompt: `${prompt}\n\n# Votes\n${counts}\n\n# Answers\n${this.#answers.text}` };
    const [output] = await calls.make("escalate", [call], this.#escalation);
    return { ...voted, escalated: output == null ? null : { to: model, output } };
  }
}
