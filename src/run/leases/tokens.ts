/** The tokens of an attempt as a gate counts them. */
import type { CallFacts } from "../../call.ts";

/** What providers take a prompt for when they admit it, bytes per token. */
const BYTES_PER_TOKEN = 4;

/** Tokens of one attempt, as providers count them at admission; no bound. `input`: the part that is the prompt. */
export type GateTokens = { input: number; all: number };

/** The tokens of an attempt that sends this completion cap; null = none. */
export function gateTokensOf(
  {
    promptBytes,
    promptTokenIds = 0,
    completions = 1,
  }: Pick<CallFacts, "promptBytes" | "promptTokenIds" | "completions">,
  capTokens: number | null,
): GateTokens {
  const input = Math.ceil(promptBytes / BYTES_PER_TOKEN) + promptTokenIds;
  return { input, all: input + (capTokens ?? 0) * completions };
}

/** Part of the mean that the latest attempt makes: the mean follows a change of the calls within some tens of them. */
const LATEST_SHARE = 0.1;

/** The mean tokens of the attempts that were started lately. */
export class MeanTokens {
  #mean: GateTokens | null = null;

  get mean(): GateTokens | null {
    return this.#mean;
  }

  add({ input, all }: GateTokens): void {
    const mean = this.#mean;
    if (mean === null) this.#mean = { input, all };
    else {
      mean.input += LATEST_SHARE * (input - mean.input);
      mean.all += LATEST_SHARE * (all - mean.all);
    }
  }
}
