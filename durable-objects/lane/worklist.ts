/** What a lane has in flight, and what has ended but is not settled yet. */
import type { StartTimer } from "../../src/upstream/attempt.ts";
import { Deadlines } from "./deadlines.ts";
import type { Settlement } from "../run/rpc.ts";

/** Attempts below this, ms, are no LLM's: their run is limited by the gateway, any other by its upstream. */
const QUICK_MS = 100;

export class Worklist {
  #running = new Map<string, AbortController>();
  #ended: Settlement[] = [];
  /** Settlements that a call is telling: whether it arrives is not known yet. */
  #telling = new Set<Settlement>();
  /** The run's instance that asked last what is here; 0 = none has. */
  #epoch = 0;
  #waiting: (() => void)[] = [];
  #deadlines = new Deadlines();
  #nudged = false;
  #lingering = false;
  /** The last attempt took so little that settling is what limits the run: then it pays to settle more at once. */
  #quick = false;

  /** How long to wait for further answers before the first is told, ms. Zero is a millisecond on workerd. */
  lingerMs = 0;

  /** Starts a timer for an attempt. */
  get timer(): StartTimer {
    return this.#deadlines.start;
  }

  /** Lets go of what outlives attempts. */
  close(): void {
    this.#deadlines.close();
  }

  /** Nothing runs, nothing is left to settle, and nobody has asked for another look. */
  get idle(): boolean {
    return this.#running.size === 0 && this.#ended.length === 0 && !this.#nudged;
  }

  /** Something is left to settle. */
  get hasEnded(): boolean {
    return this.#ended.length > 0;
  }

  /** Attempts in flight. */
  get running(): number {
    return this.#running.size;
  }

  /** Everything that is here, made or not told for certain, for the run's instance `epoch`. */
  recall(epoch: number): string[] {
    this.#epoch = epoch;
    const untold = [...this.#ended, ...this.#telling].map(({ attemptId }) => attemptId);
    return [...this.#running.keys(), ...untold];
  }

  /** Whether jobs that an instance of the run lends came too late: another has asked what is here meanwhile. */
  isReplaced(epoch: number): boolean {
    return epoch < this.#epoch;
  }

  attemptIds(): string[] {
    return [...this.#running.keys()];
  }

  /** Follows an attempt to its end. `ended` must not reject. */
  add(attemptId: string, abort: AbortController, ended: Promise<Settlement>): void {
    this.#running.set(attemptId, abort);
    void ended.then((settlement) => {
      this.#running.delete(attemptId);
      this.#quick = settlement.outcome.latencyMs < QUICK_MS;
      this.#ended.push(settlement);
      this.#wakeLater();
    });
  }

  /** Takes what has ended, to be settled. */
  takeEnded(): Settlement[] {
    const ended = this.#ended;
    this.#ended = [];
    for (const settlement of ended) this.#telling.add(settlement);
    this.#nudged = false;
    return ended;
  }

  /** Settlements have arrived. */
  delivered(settlements: readonly Settlement[]): void {
    for (const settlement of settlements) this.#telling.delete(settlement);
  }

  /** Returns settlements whose delivery is in doubt. */
  putBack(settlements: Settlement[]): void {
    this.delivered(settlements);
    if (settlements.length === 0) return;
    this.#ended.unshift(...settlements);
    this.#wake();
  }

  /** Asks for another look at the run's queue. */
  nudge(): void {
    this.#nudged = true;
    this.#wake();
  }

  /** Resolves when something has ended that is not taken yet, or another look was asked for. */
  changed(): Promise<"changed"> {
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve("changed"));
      this.#wakeLater();
    });
  }

  /** Stops attempts: their outcome tells that nobody wants it. */
  abort(attemptIds: readonly string[]): void {
    for (const attemptId of attemptIds) this.#running.get(attemptId)?.abort();
  }

  /** Lingering lets answers that arrive together travel together: a call costs more than the wait. */
  #wakeLater(): void {
    if (this.#ended.length === 0 || this.#waiting.length === 0) return;
    // When nothing runs any more there is nothing to wait for.
    if (this.#running.size === 0) return this.#wake();
    if (this.#lingering) return;
    this.#lingering = true;
    setTimeout(
      () => {
        this.#lingering = false;
        this.#wake();
      },
      this.#quick ? this.lingerMs : 0,
    );
  }

  #wake(): void {
    if (this.#ended.length === 0 && !this.#nudged) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
