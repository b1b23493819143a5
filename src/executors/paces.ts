/**
 * How many calls an executor can have in flight: few of its fetches may wait for headers at once, so that depends on how soon
 * the headers come and on how long the calls last. Both are learned from calls, by upstream and model; an isolate forgets them
 * when it ends.
 */
import { CALL_MS_ASSUMED, FILLS_PER_CALL, MODEL_PACES_KEPT } from "../limits.ts";
import type { WorkRules } from "./rules.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** What is known of the calls of a model; null = none has shown it. Means, in which the recent calls weigh most. */
type Pace = {
  headersMs: number | null;
  callMs: number | null;
  /** Whether the last answer was requested as JSON: its headers come when it is whole. */
  isJson: boolean;
};

const UNKNOWN: Readonly<Pace> = { headersMs: null, callMs: null, isJson: false };

/** Share of the newest call in the mean: four calls or so decide it. */
const NEWEST_SHARE = 0.25;

export class Paces {
  readonly #known = new BoundedMap<string, Pace>(MODEL_PACES_KEPT);

  /** The headers of a call's answer have come after so long. */
  headersArrived(model: string, headersMs: number): void {
    const { headersMs: mean } = this.#of(model);
    this.#note(model, { headersMs: meanOf(mean, headersMs) });
  }

  /** A call was answered after so long. */
  answered(model: string, callMs: number): void {
    const { callMs: mean } = this.#of(model);
    this.#note(model, { callMs: meanOf(mean, callMs) });
  }

  /** A call is about to request its answer as JSON, or as a stream. */
  requests(model: string, isJson: boolean): void {
    if (this.#of(model).isJson !== isJson) this.#note(model, { isJson });
  }

  /** How long calls of a model last, ms; null = none has ended here. */
  callMsOf(model: string): number | null {
    return this.#of(model).callMs;
  }

  /**
   * How many calls of a model an executor can have in flight: those that it can begin in a part of the time that one lasts.
   * `waitedMs`: for how long it has waited for headers by now and got none.
   */
  reachOf(
    model: string,
    waitedMs: number,
    { waitingMax, callsMax }: Pick<WorkRules, "waitingMax" | "callsMax">,
  ): number {
    const { headersMs: mean, callMs, isJson } = this.#of(model);
    if (isJson) return Math.min(waitingMax, callsMax);
    const headersMs = Math.max(mean ?? 0, waitedMs);
    const lastsMs = Math.max(callMs ?? CALL_MS_ASSUMED, headersMs);
    const begunMeanwhile = Math.floor((waitingMax * lastsMs) / (FILLS_PER_CALL * headersMs));
    return Math.min(Math.max(begunMeanwhile, waitingMax), callsMax);
  }

  #of(model: string): Readonly<Pace> {
    return this.#known.get(model) ?? UNKNOWN;
  }

  #note(model: string, more: Partial<Pace>): void {
    const next = { ...this.#of(model), ...more };
    this.#known.set(model, next);
  }
}

/** What this isolate knows: its executors learn from one another. */
export const isolatePaces = new Paces();

function meanOf(mean: number | null, newest: number): number {
  return mean === null ? newest : mean + NEWEST_SHARE * (newest - mean);
}
