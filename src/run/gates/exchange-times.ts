/**
 * When a run exchanges with a gate: seldom, and with a turn that happens anyway, so that it costs next to nothing. A run only wakes
 * up for calls that wait for the gate, at the time at which the gate lets some of them start.
 */
import {
  GATE_GAP_MS,
  GATE_REPLY_MS_MAX,
  GATE_REPORT_MS_MAX,
  GATE_RETRY_MAX_MS,
  GATE_RETRY_MS,
  TIMER_MS_MAX,
} from "../../limits.ts";

/** Attempts of the run that would start at the gate now. */
export type Demand = { waiting: number };

/** What decides on the next exchange. */
export type Situation = {
  inFlight: number;
  /** The valid grant; null = there is none. `isShort`: it was all that the gate had, until the time that it names. */
  grant: { nextAtMs: number; wakeAtMs: number; isShort: boolean } | null;
  /** The gate is not known to make calls wait. */
  isOpen: boolean;
  isUrgent: boolean;
  /** The run has said that it exchanges before it counts more; or it has counted something that the gate may not know of. */
  hasRetired: boolean;
  owes: boolean;
  isHalfUsed: boolean;
  /** Attempts wait for the gate. */
  isHeldUp: boolean;
};

export class ExchangeTimes {
  #isPending = false;
  #lastAtMs = -Infinity;
  #lastWaiting = 0;
  /** The run may have slept before the last exchange: it was the first for so long. */
  #hasSlept = false;
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
    this.#hasSlept = nowMs - this.#lastAtMs > TIMER_MS_MAX;
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

  /** When an exchange is due, with a turn that happens anyway; null = nothing makes one necessary. */
  nextMs({ waiting }: Demand, now: Situation): number | null {
    if (this.#isPending) return null;
    const isUsed = waiting > 0 || now.inFlight > 0 || now.isUrgent || now.owes;
    if (!isUsed && !this.#hasChanged) return null;
    if (this.isUnreachable) return this.#retryAtMs;
    if (now.hasRetired) return this.#lastAtMs;
    // A grant that is due again at once, of any version of a gate, must not keep the run busy with nothing else.
    const soonMs = this.#lastAtMs + GATE_GAP_MS;
    if (now.grant === null || this.#isSoon(waiting, now)) return soonMs;
    return Math.max(soonMs, now.grant.nextAtMs);
  }

  /** When time alone makes an exchange necessary; null = never. Until then the run may sleep. */
  wakeMs(demand: Demand, now: Situation): number | null {
    // A run that has slept sleeps again after the reply: one alarm serves both, and fires if the reply is lost with this instance.
    if (this.#isPending) return now.isHeldUp && this.#hasSlept ? this.#lastAtMs + GATE_REPLY_MS_MAX : null;
    const nextMs = this.nextMs(demand, now);
    if (nextMs === null || now.isUrgent || this.#hasChanged) return nextMs;
    if (now.isHeldUp) {
      const isKnown = now.grant !== null && !this.isUnreachable && !this.#isSoon(demand.waiting, now);
      return isKnown ? Math.max(nextMs, now.grant?.wakeAtMs ?? nextMs) : nextMs;
    }
    // Attempts in flight keep permits from other runs for as long as the gate counts them.
    return now.isOpen || now.inFlight === 0 ? null : Math.max(nextMs, this.#lastAtMs + GATE_REPORT_MS_MAX);
  }

  #isSoon(waiting: number, { grant, isUrgent, isHalfUsed, isHeldUp }: Situation): boolean {
    if (isUrgent || this.#hasChanged) return true;
    if (waiting === 0) return false;
    // The gate had no more to grant: there is nothing to request before the time that it has named.
    return (isHalfUsed && grant?.isShort !== true) || (isHeldUp && this.#lastWaiting === 0);
  }
}
