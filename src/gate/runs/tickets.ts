/**
 * Whose turn it is where a width has no whole permit for every run: each that waits has a ticket, in the order in which they
 * began to wait. Who comes back after its call takes a new one. Places are exact although many have their turn before it: sums over
 * ranges of tickets are in a tree (Fenwick's), so that a place costs a dozen additions among thousands.
 */
import type { Run } from "./run.ts";

type Holder = Pick<Run, "ticket">;

const CAPACITY_MIN = 256;

export class Tickets {
  /** By their number, which is the order in which they were taken. */
  readonly #holders = new Map<number, Holder>();
  #issued = 0;
  /** At `n`: how many tickets are held of the last ones up to `n`, as many as its lowest bit says. */
  #held = new Int32Array(CAPACITY_MIN + 1);

  /** Runs that wait for their turn. */
  get count(): number {
    return this.#holders.size;
  }

  /** The place of a run among them, from 1. One that has no ticket comes after all others. */
  placeOf({ ticket }: Holder): number {
    if (ticket === null) return this.count + 1;
    let place = 0;
    for (let at = ticket; at > 0; at -= at & -at) place += this.#held[at] ?? 0;
    return place;
  }

  /** A run waits for its turn. */
  take(run: Holder): void {
    if (run.ticket !== null) return;
    if (this.#issued === this.#held.length - 1) this.#renumber();
    this.#issue(run);
  }

  /** A run has had its turn, or does not wait for it. */
  end(run: Holder): void {
    if (run.ticket === null) return;
    this.#holders.delete(run.ticket);
    this.#add(run.ticket, -1);
    run.ticket = null;
  }

  #issue(run: Holder): void {
    this.#issued += 1;
    run.ticket = this.#issued;
    this.#holders.set(run.ticket, run);
    this.#add(run.ticket, 1);
  }

  #add(ticket: number, by: 1 | -1): void {
    for (let at = ticket; at < this.#held.length; at += at & -at) this.#held[at] = (this.#held[at] ?? 0) + by;
  }

  /** All numbers are used: those who wait get the first ones, in their order. At least half of the numbers are free then. */
  #renumber(): void {
    const waiting = [...this.#holders.values()];
    this.#holders.clear();
    this.#held = new Int32Array(Math.max(CAPACITY_MIN, waiting.length * 4) + 1);
    this.#issued = 0;
    for (const run of waiting) this.#issue(run);
  }
}
