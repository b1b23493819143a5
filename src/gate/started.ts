/** What all runs have started at a gate, and by when: samples of a provider show what it had counted some time ago. */
import { GATE_HISTORY_MS, GATE_HISTORY_STEP_MS } from "../limits.ts";
import type { BucketName } from "./wire.ts";

/** What was started, by the bucket that counts it, in the measure of the runs. */
export type Amount = Record<BucketName, number>;

export const NO_AMOUNT: Readonly<Amount> = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0 };

export function plus(a: Readonly<Amount>, b: Readonly<Amount>, times = 1): Amount {
  return {
    requests: a.requests + b.requests * times,
    tokens: a.tokens + b.tokens * times,
    inputTokens: a.inputTokens + b.inputTokens * times,
    outputTokens: a.outputTokens + b.outputTokens * times,
  };
}

type Mark = { atMs: number; total: Amount };

export class Started {
  #total: Readonly<Amount> = NO_AMOUNT;
  /** Totals by the time at which they were known, oldest first; the first is from before everything. */
  readonly #marks: Mark[];

  constructor(nowMs: number) {
    this.#marks = [{ atMs: nowMs, total: { ...NO_AMOUNT } }];
  }

  get total(): Readonly<Amount> {
    return this.#total;
  }

  /** Something was started from `sinceMs` to `untilMs`, evenly; it is known since now. */
  add(amount: Readonly<Amount>, sinceMs: number, untilMs: number, nowMs: number): void {
    this.#total = plus(this.#total, amount);
    for (let index = this.#marks.length - 1; index > 0; index--) {
      const mark = this.#marks[index];
      if (mark === undefined || mark.atMs <= sinceMs) break;
      addTo(mark.total, amount, Math.min(1, (mark.atMs - sinceMs) / Math.max(1, untilMs - sinceMs)));
    }
    const last = this.#marks.at(-1);
    const isRecent = last !== undefined && this.#marks.length > 1 && nowMs - last.atMs < GATE_HISTORY_STEP_MS;
    if (!isRecent) this.#marks.push({ atMs: nowMs, total: { ...this.#total } });
    while ((this.#marks[1]?.atMs ?? nowMs) < nowMs - GATE_HISTORY_MS) this.#marks.shift();
  }

  /** What had been started by a time; between two marks in proportion, because reports come after what they report. */
  by(bucket: BucketName, atMs: number): number {
    const last = this.#marks.at(-1);
    if (last === undefined || last.atMs <= atMs) return this.#total[bucket];
    const next = this.#firstAfter(atMs);
    const after = this.#marks[next];
    const before = this.#marks[next - 1];
    if (after === undefined || before === undefined) return 0;
    const share = (atMs - before.atMs) / (after.atMs - before.atMs);
    return before.total[bucket] + (after.total[bucket] - before.total[bucket]) * share;
  }

  #firstAfter(atMs: number): number {
    let [from, to] = [0, this.#marks.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#marks[middle]?.atMs ?? Infinity) > atMs) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}

function addTo(sum: Amount, amount: Readonly<Amount>, times: number): void {
  sum.requests += amount.requests * times;
  sum.tokens += amount.tokens * times;
  sum.inputTokens += amount.inputTokens * times;
  sum.outputTokens += amount.outputTokens * times;
}
