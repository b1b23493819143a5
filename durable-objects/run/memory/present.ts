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
 * claimed and has no reply, or this instance has seen no claim of it. `restsUntilMs`: until then it is not signalled.
 */
type Present = { sent: Sent; sentAtMs: number; room: number | null; restsUntilMs: number };

export class PresentExecutors {
  /** Apart from each other: each turn looks at the Workers, but at the hundreds of lanes only if one of them could start something. */
  readonly #lanes = new Map<number, Present>();
  readonly #workers = new Map<number, Present>();

  get size(): number {
    return this.#lanes.size + this.#workers.size;
  }

  has(executor: number): boolean {
    return this.#of(executor).has(executor);
  }

  /** The lanes that are there. */
  lanes(): Iterable<number> {
    return this.#lanes.keys();
  }

  /** The Workers of groups that are there. */
  workers(): Iterable<number> {
    return this.#workers.keys();
  }

  /** An executor has a socket. */
  opened(executor: number): void {
    const { room = null, restsUntilMs = 0 } = this.#get(executor) ?? {};
    this.#of(executor).set(executor, { sent: "nothing", sentAtMs: 0, room, restsUntilMs });
  }

  closed(executor: number): void {
    this.#of(executor).delete(executor);
  }

  /** It claims: what it was sent has served its purpose. */
  claimed(executor: number): void {
    const present = this.#get(executor);
    if (present === undefined) return;
    present.sent = "nothing";
    present.room = null;
  }

  /** Its claim is replied to, which leaves it with room for so many attempts. False if it has no socket. */
  replied(executor: number, room: number): boolean {
    const present = this.#get(executor);
    if (present === undefined) return false;
    present.room = Math.max(0, room);
    return true;
  }

  /**
   * A lane claims although the run counts no room in it: it has yet to get the reply to an older claim, or that one was lost, whose
   * attempts the run counts until their leases end. A signal would make it claim again at once, and again.
   */
  refused(lane: number, nowMs: number): void {
    const present = this.#get(lane);
    if (present === undefined) return;
    present.room = 0;
    present.restsUntilMs = nowMs + SIGNALLED_CLAIM_MS;
  }

  /** Whether it is not to be signalled for now, because it was refused. */
  rests(executor: number, nowMs: number): boolean {
    return nowMs < (this.#get(executor)?.restsUntilMs ?? 0);
  }

  /** How many attempts it has room for at least; null = nobody knows. */
  roomOf(executor: number): number | null {
    return this.#get(executor)?.room ?? null;
  }

  /** Notes that it is sent a signal. False if it was sent this, or more, since its last claim. */
  notes(executor: number, type: "slots" | "changed", nowMs: number): boolean {
    const present = this.#get(executor);
    if (present === undefined || present.sent === "changed" || present.sent === type) return false;
    present.sent = type;
    present.sentAtMs = nowMs;
    return true;
  }

  /** Whether it was sent a signal since its last claim. */
  isSignalled(executor: number): boolean {
    return (this.#get(executor)?.sent ?? "nothing") !== "nothing";
  }

  /** Whether it should have claimed by now: it has no room, or has ended without a word. */
  isLate(executor: number, nowMs: number): boolean {
    return this.isSignalled(executor) && nowMs >= this.#dueMs(executor);
  }

  /** When the next lane of those that were signalled is late, or one that was refused may be signalled again; null = none. */
  nextLateMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { sent, sentAtMs, restsUntilMs } of this.#lanes.values()) {
      const dueMs = sent === "nothing" ? restsUntilMs : sentAtMs + SIGNALLED_CLAIM_MS;
      if (dueMs > nowMs) next = Math.min(next ?? Infinity, dueMs);
    }
    return next;
  }

  #dueMs(executor: number): number {
    return (this.#get(executor)?.sentAtMs ?? 0) + SIGNALLED_CLAIM_MS;
  }

  #get(executor: number): Present | undefined {
    return this.#of(executor).get(executor);
  }

  #of(executor: number): Map<number, Present> {
    return isWorker(executor) ? this.#workers : this.#lanes;
  }
}
