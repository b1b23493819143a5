/**
 * What a run has to report to a gate: how its attempts ended there since the last report. A report whose reply was lost is
 * sent once more under the same number with the same news, so that the gate counts them once; newer ones wait for the next.
 */
import type { GateFailure, GateReport, RateSample, UsedTokens } from "../../gate/wire.ts";
import { GATE_MODELS_MAX, GATE_SAMPLES_MAX, METER_MODEL_CHARS_MAX } from "../../limits.ts";
import { LatencyChanges, type Answered } from "./latency-changes.ts";
import type { GateTokens } from "../leases/tokens.ts";

/** The fields of a report that speak of the time since the last one. */
type Reported = Pick<GateReport, "number" | "latency" | "samples" | "failures" | "recovered" | "used">;

type Aged<T> = Omit<T, "ageMs"> & { atMs: number };

/** A failure, with how many attempts at each model have failed so; empty = models are not counted. */
type CountedFailure = Omit<Aged<GateFailure>, "models"> & { byModel: Map<string, number> };

/** News that are in one report, or will be. */
class Batch {
  samples: Aged<RateSample>[] = [];
  readonly failures = new Map<string, CountedFailure>();
  readonly latency = new LatencyChanges();
  recovered = false;
  used: UsedTokens | null = null;

  get isUrgent(): boolean {
    return this.failures.size > 0 || this.recovered;
  }
}

/** An attempt that failed in a way that concerns the key. `model`: the one that is overloaded; absent = the key may be. */
export type Failed = Pick<GateFailure, "class" | "stop" | "hintMs" | "message"> & { model?: string };

export class GateChanges {
  #next = new Batch();
  #sent: Batch | null = null;
  #number = 0;

  /** Number of the last report. */
  get number(): number {
    return this.#number;
  }

  /** True if the gate must know of something at once. */
  get isUrgent(): boolean {
    return this.#next.isUrgent || this.#sent?.isUrgent === true;
  }

  /** True if headers were seen that are in no report. */
  get hasSamples(): boolean {
    return this.#next.samples.length > 0;
  }

  /** An attempt ended in an answer. */
  answered(answered: Answered): void {
    this.#next.latency.answered(answered);
  }

  /** An answer says what its call has used, for which the run had counted so much. */
  used({ input, output }: Pick<UsedTokens, "input" | "output">, counted: Readonly<GateTokens>): void {
    const used = (this.#next.used ??= { input: 0, output: 0, countedInput: 0, countedOutput: 0 });
    used.input += input;
    used.output += output;
    used.countedInput += counted.input;
    used.countedOutput += counted.all - counted.input;
  }

  /** An attempt has shown that the key of a stopped gate works again. */
  recovered(): void {
    this.#next.recovered = true;
  }

  /** Headers of an answer were seen. */
  seen({ ageMs, ...buckets }: RateSample, nowMs: number): void {
    const { samples } = this.#next;
    samples.push({ ...buckets, atMs: nowMs - ageMs });
    samples.sort((a, b) => a.atMs - b.atMs);
    if (samples.length > GATE_SAMPLES_MAX) samples.shift();
  }

  /** An attempt failed. */
  failed({ class: failureClass, stop, hintMs, message, model }: Failed, nowMs: number): void {
    const { failures } = this.#next;
    const key = `${failureClass} ${stop ?? ""}`;
    const known = failures.get(key);
    const byModel = known?.byModel ?? new Map<string, number>();
    if (model !== undefined) countModel(byModel, model.slice(0, METER_MODEL_CHARS_MAX));
    if (known === undefined) {
      failures.set(key, { class: failureClass, stop, hintMs, message, count: 1, atMs: nowMs, byModel });
      return;
    }
    known.count += 1;
    // A hint counts from its arrival: that of the older failure has run down since.
    const leftMs = known.hintMs === null ? null : Math.max(0, known.hintMs - (nowMs - known.atMs));
    known.hintMs = hintMs === null ? leftMs : Math.max(hintMs, leftMs ?? 0);
    known.message = message ?? known.message;
    known.atMs = nowMs;
  }

  /** The news of the next report: those of the last one again, if its reply has not come. */
  take(nowMs: number): Reported {
    if (this.#sent === null) {
      this.#sent = this.#next;
      this.#next = new Batch();
      this.#number += 1;
    }
    const { samples, failures, latency, recovered, used } = this.#sent;
    const aged = <T extends { atMs: number }>({ atMs, ...rest }: T) => ({ ...rest, ageMs: Math.max(0, nowMs - atMs) });
    return {
      number: this.#number,
      latency: latency.reported,
      samples: samples.map(aged),
      failures: [...failures.values()].map(({ byModel, ...failure }) => {
        if (byModel.size === 0) return aged(failure);
        return { ...aged(failure), models: [...byModel].map(([model, count]) => ({ model, count })) };
      }),
      recovered,
      ...(used === null ? {} : { used }),
    };
  }

  /** The gate has the last report. */
  acknowledged(): void {
    this.#sent = null;
  }
}

/** Attempts at models beyond those that a report has count for the key. */
function countModel(byModel: Map<string, number>, model: string): void {
  const count = byModel.get(model);
  if (count !== undefined || byModel.size < GATE_MODELS_MAX) byModel.set(model, (count ?? 0) + 1);
}
