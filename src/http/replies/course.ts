/** What an answer shows of a call that went to several models, was made several times, or used tools. */
import { votesIn, type Samples } from "../../run/answers/samples.ts";
import { usdOf } from "../../run/money/money.ts";
import { round } from "../../run/group/group.ts";
import type { SlotView } from "../../objects/methods/groups.ts";

/** The fields beside those of every call; each undefined for a call to which it does not apply. */
export function courseFields({ course }: { course?: SlotView["course"] | undefined }) {
  const { steps, samples } = course ?? {};
  return {
    steps: steps?.map(({ costNanoUsd, ...step }) => ({ ...step, cost: usdOf(costNanoUsd) })),
    ...usedTools({ course }),
    decided: samples?.decided,
    samples: samples === undefined ? undefined : samplesOf(samples),
  };
}

/** What a model has done with the tools of the run. */
export function usedTools({ course }: { course?: SlotView["course"] | undefined }) {
  const { turns, calls } = course?.toolUse ?? {};
  return { turns, tool_calls: calls };
}

function samplesOf({ made, failed, votes: counts }: Samples) {
  const votes = votesIn(counts);
  return { made, failed, votes, agreement: votes === 0 ? 0 : round((counts[0]?.votes ?? 0) / votes), counts };
}
