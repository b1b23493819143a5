/**
 * Executors that have a socket to the run: they wait there, so that the run sleeps meanwhile, and claim once they are
 * signalled. In memory only: an instance that wakes finds their sockets.
 */
import { isWorker } from "../../../src/run/leases/shard.ts";

/** What an executor was sent since its last claim. */
type Sent = "nothing" | "slots" | "changed";

export class PresentExecutors {
  readonly #sent = new Map<number, Sent>();

  get size(): number {
    return this.#sent.size;
  }

  has(executor: number): boolean {
    return this.#sent.has(executor);
  }

  /** The lanes that are there. */
  lanes(): number[] {
    return [...this.#sent.keys()].filter((executor) => !isWorker(executor));
  }

  all(): Iterable<number> {
    return this.#sent.keys();
  }

  /** An executor has a socket. */
  opened(executor: number): void {
    this.#sent.set(executor, "nothing");
  }

  closed(executor: number): void {
    this.#sent.delete(executor);
  }

  /** It claims: what it was sent has served its purpose. */
  claimed(executor: number): void {
    if (this.#sent.has(executor)) this.#sent.set(executor, "nothing");
  }

  /** Notes that it is sent a signal. False if it was sent this, or more, since its last claim. */
  notes(executor: number, type: "slots" | "changed"): boolean {
    const sent = this.#sent.get(executor);
    if (sent === undefined || sent === "changed" || sent === type) return false;
    this.#sent.set(executor, type);
    return true;
  }
}
