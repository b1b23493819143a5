/** A key that its provider calls unusable: nothing is sent but one probe at a time, until one succeeds or an operator says so. */
import type { StopReason } from "../call.ts";
import { GATE_PROBE_DELAYS_MS } from "../limits.ts";

/** What is stored of a stop. */
export type StoredStop = { reason: StopReason; sinceMs: number; message: string | null };

export class Stop {
  readonly reason: StopReason;
  readonly message: string | null;
  readonly sinceMs: number;
  #probes = 0;
  #nextProbeMs: number;

  constructor({ reason, message, sinceMs }: StoredStop, nowMs: number) {
    this.reason = reason;
    this.message = message;
    this.sinceMs = sinceMs;
    this.#nextProbeMs = nowMs + delayOf(0);
  }

  /** Grants the probe that is due; false = none is. */
  takeProbe(nowMs: number): boolean {
    if (nowMs < this.#nextProbeMs) return false;
    this.#probes += 1;
    this.#nextProbeMs = nowMs + delayOf(this.#probes);
    return true;
  }

  /** Time until the next probe is due, ms. */
  nextProbeInMs(nowMs: number): number {
    return Math.max(0, this.#nextProbeMs - nowMs);
  }

  stored(): StoredStop {
    return { reason: this.reason, sinceMs: this.sinceMs, message: this.message };
  }
}

function delayOf(probe: number): number {
  return GATE_PROBE_DELAYS_MS[Math.min(probe, GATE_PROBE_DELAYS_MS.length - 1)] ?? 0;
}
