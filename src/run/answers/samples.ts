/** The samples of one call: what its answers voted for so far, whether that decides, and whether more of them can. */
import type { Sampling } from "../../call.ts";
import { voteOf } from "./comparison.ts";

/** What the samples of a call were, as its slot's row keeps it. */
export type Samples = {
  made: number;
  failed: number;
  /** What was voted for and how often; the first is the answer that leads. */
  votes: readonly { answer: string; votes: number }[];
  /** Whether enough of the votes agree. */
  decided: boolean;
};

/** The samples of a call after one more. */
export type Sampled = {
  samples: Samples;
  /** Whether the answer of this sample is the one to deliver, should it be the last. */
  leads: boolean;
  /** Whether no further sample is needed, or none could decide. */
  isEnough: boolean;
};

const NONE: Samples = { made: 0, failed: 0, votes: [], decided: false };

/** Adds a sample. `text` null = it failed: then it is no vote. */
export function withSample(before: Samples | undefined, text: string | null, rule: Sampling): Sampled {
  const { made, failed, votes } = before ?? NONE;
  const vote = text === null ? null : voteOf(text, rule.comparison);
  const counted = vote === null ? votes : withVote(votes, vote);
  const all = votesIn(counted);
  const most = counted[0]?.votes ?? 0;
  const decided = all >= rule.min && most >= rule.agree * all;
  const left = rule.max - made - 1;
  // If all that is left voted for the answer that leads.
  const isHopeless = most + left < rule.agree * (all + left) || all + left < rule.min;
  const isFirst = text !== null && votes.length === 0;
  const leads = isFirst || (vote !== null && counted[0]?.answer === vote && votes[0]?.answer !== vote);
  const samples = { made: made + 1, failed: failed + (text === null ? 1 : 0), votes: counted, decided };
  return { samples, leads, isEnough: decided || left === 0 || (made + 1 >= rule.min && isHopeless) };
}

/** How many samples have voted. */
export function votesIn(votes: Samples["votes"]): number {
  return votes.reduce((sum, each) => sum + each.votes, 0);
}

/** The votes with one more, most first; of equally many, those that came first. */
function withVote(votes: Samples["votes"], vote: string): Samples["votes"] {
  const counted = votes.map((each) => (each.answer === vote ? { ...each, votes: each.votes + 1 } : each));
  if (!votes.some(({ answer }) => answer === vote)) counted.push({ answer: vote, votes: 1 });
  return counted.toSorted((a, b) => b.votes - a.votes);
}
