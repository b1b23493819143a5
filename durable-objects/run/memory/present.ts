/**
 * Executors that have a socket to the run: they wait there, so that the run sleeps meanwhile, and claim once they are
 * signalled. In memory only: an instance that wakes finds their sockets.
 */
import { isWorker } from "../../../src/run/leases/shard.ts";
import { SIGNALLED_CLAIM_MS } from "../../../src/limits.ts";

/** What an executor was sent since its last claim. */
type Sent = "nothing" | "slots" | "changed";

/**
 * `room`: the attempts that it had room for by the reply to its last claim, which are not fewer until it claims again; null = it has
 * claimed and has no reply, or this instance has seen no claim of it.
 */
type Present = { sent: Sent; sentAtMs: number; room: number | null };

export class PresentExecutors {
  readonly #present = new Map<number, Present>();

  get size(): number {
    return this.#present.size;
  }

  has(executor: number): boolean {
    return this.#present.has(executor);
  }

  /** The lanes that are there. */
  lanes(): number[] {
    return [...this.#present.keys()].filter((executor) => !isWorker(executor));
  }

  all(): Iterable<number> {
    return this.#present.keys();
  }

  /** An executor has a socket. */
  opened(executor: number): void {
    this.#present.set(executor, { sent: "nothing", sentAtMs: 0, room: this.#present.get(executor)?.room ?? null });
  }

  closed(executor: number): void {
    this.#present.delete(executor);
  }

  /** It claims: what it was sent has served its purpose. */
  claimed(executor: number): void {
    const present = this.#present.get(executor);
    if (present === undefined) return;
    present.sent = "nothing";
    present.room = null;
  }

  /** Its claim is replied to, which leaves it with room for so many attempts. False if it has no socket. */
  replied(executor: number, room: number): boolean {
    const present = this.#present.get(executor);
    if (present === undefined) return false;
    present.room = Math.max(0, room);
    return true;
  }

  /** How many attempts it has room for at least; null = nobody knows. */
  roomOf(executor: number): number | null {
    return this.#present.get(executor)?.room ?? null;
  }

  /** Notes that it is sent a signal. False if it was sent this, or more, since its last claim. */
  notes(executor: number, type: "slots" | "changed", nowMs: number): boolean {
    const present = this.#present.get(executor);
    if (present === undefined || present.sent === "changed" || present.sent === type) return false;
    present.sent = type;
    present.sentAtMs = nowMs;
    return true;
  }

  /** Whether it was sent a signal since its last claim. */
  isSignalled(executor: number): boolean {
    return (this.#present.get(executor)?.sent ?? "nothing") !== "nothing";
  }

  /** Whether it should have claimed by now: it has no room, or has ended without a word. */
  isLate(executor: number, nowMs: number): boolean {
    return this.isSignalled(executor) && nowMs >= this.#dueMs(executor);
  }

  /** When the next lane of those that were signalled is late; null = none will be. */
  nextLateMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const [executor, { sent }] of this.#present) {
      if (sent === "nothing" || isWorker(executor)) continue;
      const dueMs = this.#dueMs(executor);
      if (dueMs > nowMs) next = Math.min(next ?? Infinity, dueMs);
    }
    return next;
  }

  #dueMs(executor: number): number {
    return (this.#present.get(executor)?.sentAtMs ?? 0) + SIGNALLED_CLAIM_MS;
  }
}
