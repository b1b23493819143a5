/**
 * Whose turn it is where a width has no whole permit for every run: each that waits has a ticket, in the order in which they
 * began to wait. Who comes back after its call takes a new one.
 */
import type { Run } from "./run.ts";

export class Tickets {
  #issued = 0;
  #ended = 0;

  /** Runs that wait for their turn. */
  get count(): number {
    return this.#issued - this.#ended;
  }

  /** The place of a run among them, from 1. One that has no ticket comes after all others. */
  placeOf({ ticket }: Pick<Run, "ticket">): number {
    // A ticket that is behind others that have ended is at least the first of those that are left.
    return ticket === null ? this.count + 1 : Math.max(1, ticket - this.#ended);
  }

  /** A run waits for its turn. */
  take(run: Pick<Run, "ticket">): void {
    if (run.ticket === null) run.ticket = ++this.#issued;
  }

  /** A run has had its turn, or does not wait for it. */
  end(run: Pick<Run, "ticket">): void {
    if (run.ticket === null) return;
    run.ticket = null;
    this.#ended += 1;
  }
}
