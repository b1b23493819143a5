/**
 * Completion caps learned from a run's own answers, per upstream and model. Kept in memory only: after a restart, calls
 * reserve the default cap until enough answers have arrived.
 */
import { endedAtCap } from "../money/capped.ts";
import { capFor, countAnswer, noLengths, type CompletionLengths } from "../money/learned-cap.ts";
import type { Outcome } from "../../call.ts";
import { LEARNED_ANSWERS_PER_FLIGHT, LEARNED_MODELS_MAX } from "../../limits.ts";
import type { AttemptInFlight, Target } from "../leases/shard.ts";

type Known = { lengths: CompletionLengths; capTokens: number | null };

export class LearnedCaps {
  readonly #models = new Map<string, Known>();

  /**
   * The cap that suffices for a target's answers, in tokens; null = the default must be reserved. It is null while few
   * answers have arrived for the attempts in flight, because the first to arrive are the shortest.
   */
  capOf(target: Pick<Target, "upstream" | "model">, inFlight: number): number | null {
    const known = this.#models.get(keyOf(target));
    return known === undefined || known.lengths.answers < LEARNED_ANSWERS_PER_FLIGHT * inFlight
      ? null
      : known.capTokens;
  }

  /**
   * Counts a whole answer to a call that named no cap. Answers that the budget cut, or could have cut, do not count,
   * nor those without a token count from the upstream.
   */
  learn(outcome: Outcome, lease: Pick<AttemptInFlight, "target" | "capTokens" | "capKind">): void {
    const { capKind, target } = lease;
    if (outcome.kind !== "success" || outcome.usage === null || outcome.usage.completionTokens < 1) return;
    if (capKind !== "default" && capKind !== "learned") return;
    if (isTooShort(outcome, lease)) return;
    const known = this.#knownOf(keyOf(target));
    if (known === null) return;
    countAnswer(known.lengths, outcome.usage.completionTokens);
    known.capTokens = capFor(known.lengths);
  }

  #knownOf(key: string): Known | null {
    const known = this.#models.get(key);
    if (known !== undefined) return known;
    if (this.#models.size >= LEARNED_MODELS_MAX) return null;
    const fresh = { lengths: noLengths(), capTokens: null };
    this.#models.set(key, fresh);
    return fresh;
  }
}

/** True if an answer ended at a learned cap: it is paid for, but not the answer that was requested. */
export function isTooShort(outcome: Outcome, lease: Pick<AttemptInFlight, "capTokens" | "capKind">): boolean {
  return lease.capKind === "learned" && endedAtCap(outcome, lease);
}

/** Names of upstreams and models have no control characters. */
function keyOf({ upstream, model }: Pick<Target, "upstream" | "model">): string {
  return `${upstream}\n${model}`;
}
