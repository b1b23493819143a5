/** Executors whose claim is pending: lanes that wait for work, and Workers that wait for work or their group's end. */
import { isWorker } from "../../../src/run/leases/shard.ts";
import { LONG_POLL_MS, RPC_WAIT_MS } from "../../../src/limits.ts";
import type { ClaimReply, EndedReply } from "../../../src/objects/methods/groups.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";

/** Slots whose attempts a claim has settled, and whether each was answered. */
export type SettledSlots = ReadonlyMap<number, { answered: boolean }>;

type Claim = {
  capacity: number;
  waits: boolean;
  settled?: SettledSlots;
  asksForLanes?: boolean;
  /** Set by a Worker that shows slots as they end: those that it knows. */
  after?: EndedReply["cursor"] | undefined;
  reply: (claim: ClaimReply) => void;
};
type WaitingExecutor = Claim & { sinceMs: number };

/** Whether an executor with room for so many attempts waits at its socket. */
type Rests = (executor: number, room: number) => boolean;

const NO_SLOTS: SettledSlots = new Map();
/** Nothing to do for now. */
export const NO_WORK: Readonly<ClaimReply> = { jobs: [], epoch: 0, defaults: {}, claimMore: true, batchingDelayMs: 0 };
/** Nothing to do for now: the run signals when there is. */
const AT_SOCKET: Readonly<ClaimReply> = { ...NO_WORK, atSocket: true };
/** Nothing to do, and nothing to wait for. */
export const NOTHING_QUEUED: Readonly<ClaimReply> = { ...NO_WORK, claimMore: false };

/** Executors waiting for work, in the order of arrival. One waits once: its newer call makes its older one return. */
export class WaitingExecutors {
  #executors = new RenewedMap<number, WaitingExecutor>();

  get size(): number {
    return this.#executors.size;
  }

  has(executor: number): boolean {
    return this.#executors.has(executor);
  }

  /** Whether a lane waits. */
  get hasLanes(): boolean {
    for (const executor of this.#executors.keys()) if (!isWorker(executor)) return true;
    return false;
  }

  /** The lanes that wait. */
  lanes(): number[] {
    return [...this.#executors.keys()].filter((executor) => !isWorker(executor));
  }

  /** Lets an executor wait for up to `capacity` attempts: at least to the end of the turn, which says whether there are more. */
  wait(executor: number, claim: Claim, nowMs: number): void {
    this.replyTo(executor, NO_WORK);
    this.#executors.set(executor, { ...claim, sinceMs: nowMs });
  }

  /** Replies to a lane that gets nothing, and need not claim again. */
  refuse(lane: number, reply: Claim["reply"]): void {
    this.replyTo(lane, NO_WORK);
    reply(NOTHING_QUEUED);
  }

  /**
   * Replies to lanes that got nothing in this turn and do not wait for the next. `rests`: whether a lane with room for so many
   * attempts waits at its socket instead of claiming once more.
   */
  releaseLanes(claimMore: boolean, rests: Rests): void {
    for (const [executor, { waits, capacity }] of [...this.#executors]) {
      if (isWorker(executor)) continue;
      if (claimMore && waits) continue;
      const atSocket = rests(executor, capacity);
      this.replyTo(executor, claimMore ? (atSocket ? AT_SOCKET : NO_WORK) : NOTHING_QUEUED);
    }
  }

  /** Replies to the Workers that wait with what `replyOf` returns; null = the Worker goes on waiting. */
  releaseWorkers(replyOf: (worker: number, waits: boolean) => ClaimReply | null): void {
    for (const [executor, { waits }] of [...this.#executors]) {
      const claim = isWorker(executor) ? replyOf(executor, waits) : null;
      if (claim !== null) this.replyTo(executor, claim);
    }
  }

  /** The slots that the claim of a waiting executor has settled. */
  settledBy(executor: number): SettledSlots {
    return this.#executors.get(executor)?.settled ?? NO_SLOTS;
  }

  /** The ended slots that a waiting Worker knows, if it shows them as they end. */
  knownTo(executor: number): EndedReply["cursor"] | undefined {
    return this.#executors.get(executor)?.after;
  }

  /** Whether the reply to a waiting executor names the lanes to start. */
  asksForLanes(executor: number): boolean {
    return this.#executors.get(executor)?.asksForLanes === true;
  }

  /** How many attempts an executor that waits can take. */
  roomOf(executor: number): number {
    return this.#executors.get(executor)?.capacity ?? 0;
  }

  /** How many attempts each waiting executor can take; dispatch counts them down. */
  offers(): Map<number, number> {
    const offers = new Map<number, number>();
    for (const [executor, { capacity }] of this.#executors) if (capacity > 0) offers.set(executor, capacity);
    return offers;
  }

  replyTo(executor: number, claim: Readonly<ClaimReply>): void {
    const waiting = this.#executors.get(executor);
    this.#executors.delete(executor);
    waiting?.reply(claim);
  }

  /**
   * Replies to executors that have waited long enough. Those that have a socket wait there, so that the run can sleep; others
   * claim once more.
   */
  sweep(nowMs: number, rests: Rests): void {
    for (const [executor, { sinceMs, capacity }] of [...this.#executors]) {
      const waitedMs = nowMs - sinceMs;
      if (waitedMs >= RPC_WAIT_MS && rests(executor, capacity)) this.replyTo(executor, AT_SOCKET);
      else if (waitedMs >= LONG_POLL_MS) this.replyTo(executor, NO_WORK);
    }
  }
}
