/**
 * When a run exchanges with a gate. An open gate costs nothing: the run exchanges seldom, with a turn that happens anyway. One
 * that makes calls wait is asked before the chunk that it granted ends, and when something changes that others must know of.
 */
import type { GateClass } from "../../gate/wire.ts";
import { GATE_GAP_MS, GATE_RETRY_MAX_MS, GATE_RETRY_MS } from "../../limits.ts";

/** Attempts of the run that would start at the gate now. */
export type Demand = { waiting: number };

type Situation = {
  inFlight: number;
  /** The valid grant; null = there is none. */
  grant: { class: GateClass; nextAtMs: number } | null;
  isUrgent: boolean;
  isHalfUsed: boolean;
  /** Attempts wait for the gate. */
  isHeldUp: boolean;
};

export class ExchangeTimes {
  #isPending = false;
  #lastAtMs = -Infinity;
  #lastWaiting = 0;
  #failures = 0;
  #retryAtMs = 0;
  #hasChanged = false;

  /** True while the gate does not reply: then the run decides by itself. */
  get isUnreachable(): boolean {
    return this.#failures > 0;
  }

  /** True while a report has no reply yet. */
  get isPending(): boolean {
    return this.#isPending;
  }

  /** True if the gate has changed since the last report. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  reported({ waiting }: Demand, nowMs: number): void {
    this.#isPending = true;
    this.#hasChanged = false;
    this.#lastAtMs = nowMs;
    this.#lastWaiting = waiting;
  }

  succeeded(): void {
    this.#isPending = false;
    this.#failures = 0;
  }

  /** The next try follows after a delay that doubles, with jitter: runs that lost their gate must not come back together. */
  failed(random: number, nowMs: number): void {
    this.#isPending = false;
    const ceilingMs = Math.min(GATE_RETRY_MAX_MS, GATE_RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#retryAtMs = nowMs + Math.ceil((ceilingMs * (1 + random)) / 2);
  }

  changed(): void {
    this.#hasChanged = true;
  }

  /** When the next exchange is due; null = nothing makes one necessary. */
  nextMs({ waiting }: Demand, now: Situation): number | null {
    if (this.#isPending) return null;
    const isUsed = waiting > 0 || now.inFlight > 0 || now.isUrgent;
    if (!isUsed && !this.#hasChanged) return null;
    if (this.isUnreachable) return this.#retryAtMs;
    const soonMs = this.#lastAtMs + GATE_GAP_MS;
    if (now.isUrgent || this.#hasChanged || now.grant === null) return soonMs;
    const hasBegunToWait = waiting > 0 && this.#lastWaiting === 0;
    if ((waiting > 0 && now.isHalfUsed) || (now.isHeldUp && hasBegunToWait)) return soonMs;
    // A grant that is due again at once, of any version of a gate, must not keep the run busy with nothing else.
    return Math.max(soonMs, now.grant.nextAtMs);
  }
}
