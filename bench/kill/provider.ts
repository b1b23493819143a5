/** The upstream of a volley. For each call it records the name, the times of arrival and answer, and the cost. */
import { PROMPT_TOKENS_UNSEEN } from "../../src/limits.ts";
import { draw } from "../budget/tariff.ts";
import {
  startUpstream,
  type TestUpstream,
  type UpstreamAnswer,
  type UpstreamCall,
} from "../../test/support/upstream.ts";
import type { RunPlan } from "./plan.ts";
import { sleep } from "./wait.ts";

/** USD per million tokens; whole nano-USD per token. */
export const PRICES = { input: 0.15, output: 0.6 };
/** Cap of each answer: the least that a call can be clamped to, so that no budget cuts an answer short. */
export const MAX_TOKENS = 16;
const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 3;

/** One arrival of a call. Times are `performance.now()`; `answeredMs` is null while it is in flight. */
export type Send = { atMs: number; answeredMs: number | null };

export function promptOf({ name, promptBytes }: RunPlan, index: number): string {
  return `${name}.${index} `.padEnd(promptBytes, "lorem ipsum ");
}

/** What a call is answered, whenever it is made. */
export function textOf({ name }: RunPlan, index: number): string {
  return `this is ${name}.${index}`;
}

/** What the upstream bills for a call each time that it arrives, nano-USD. */
export function billNanoUsd(run: RunPlan, index: number): number {
  const promptTokens = Math.ceil(promptOf(run, index).length / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE;
  const completionTokens = Math.ceil(textOf(run, index).length / BYTES_PER_TOKEN);
  return Math.round(promptTokens * PRICES.input * 1_000 + completionTokens * PRICES.output * 1_000);
}

/**
 * The most that a call stays charged which a kill takes while it is in flight, nano-USD: its reservation. Of the first calls to a
 * model, the prompt is reserved with one token a byte and a template that nobody has seen.
 */
export function lostNanoUsdMax({ promptBytes }: RunPlan): number {
  const promptTokens = promptBytes + PROMPT_TOKENS_UNSEEN;
  return Math.round(promptTokens * PRICES.input * 1_000 + MAX_TOKENS * PRICES.output * 1_000);
}

export class Provider {
  requests = 0;
  readonly #plans: ReadonlyMap<string, RunPlan>;
  /** By run, then by slot, in the order of arrival. */
  readonly #sends = new Map<string, Send[][]>();
  readonly #answered = new Map<string, number>();

  constructor(plans: readonly RunPlan[]) {
    this.#plans = new Map(plans.map((plan) => [plan.name, plan]));
    for (const { name, slots } of plans)
      this.#sends.set(
        name,
        Array.from({ length: slots }, () => []),
      );
  }

  start(): Promise<TestUpstream> {
    return startUpstream((call) => this.#answer(call), { recordsPrompts: false });
  }

  /** Arrivals of a run's calls, by slot. */
  sendsOf(run: string): readonly (readonly Send[])[] {
    return this.#sends.get(run) ?? [];
  }

  /** Slots of a run that were answered at least once. */
  answeredOf(run: string): number {
    return this.#answered.get(run) ?? 0;
  }

  #answer({ prompt }: UpstreamCall): UpstreamAnswer {
    const [, run = "", slot = ""] = /^(\w+)\.(\d+) /.exec(prompt) ?? [];
    const [plan, sends] = [this.#plans.get(run), this.#sends.get(run)?.[Number(slot)]];
    if (plan === undefined || sends === undefined) return { status: 400 };
    this.requests += 1;
    const send: Send = { atMs: performance.now(), answeredMs: null };
    sends.push(send);
    const latencyMs = plan.latencyMsMax * draw(run, slot, sends.length);
    return { text: textOf(plan, Number(slot)), after: this.#end(run, sends, send, latencyMs) };
  }

  async #end(run: string, sends: readonly Send[], send: Send, latencyMs: number): Promise<void> {
    if (latencyMs > 0) await sleep(latencyMs);
    if (sends.every(({ answeredMs }) => answeredMs === null)) this.#answered.set(run, this.answeredOf(run) + 1);
    send.answeredMs = performance.now();
  }
}
