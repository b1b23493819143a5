/** Attempts in flight that were given up, until the executors that make them have been notified. In memory only. */
import type { Reason } from "../../errors.ts";
import { RenewedMap } from "../../renewed/map.ts";
import { executorOf, isWorker, type AttemptInFlight, type Shard } from "./shard.ts";

export class GivenUpAttempts {
  #byLane = new Map<number, string[]>();
  readonly #byWorker = new Map<number, string[]>();
  #ofCalls: string[] = [];
  /** Attempts in flight that their executors must stop and report, and why. */
  readonly #stopping = new RenewedMap<string, Reason>();

  /** Notes an attempt that its executor must stop and report: it is in flight until then. Called again, it changes nothing. */
  stop(inFlight: { lease: AttemptInFlight; shard: Shard }, reason: Reason): void {
    const { attemptId } = inFlight.lease;
    if (this.#stopping.has(attemptId)) return;
    this.#stopping.set(attemptId, reason);
    this.add(inFlight);
  }

  /** Why an attempt in flight must stop; null = it need not. */
  reasonOf(attemptId: string): Reason | null {
    return this.#stopping.get(attemptId) ?? null;
  }

  /** An attempt is not in flight any more. */
  ended(attemptId: string): void {
    this.#stopping.delete(attemptId);
  }

  /** Notes an attempt whose executor must be notified that it was given up. */
  add({ lease: { attemptId, slotId }, shard }: { lease: AttemptInFlight; shard: Shard }): void {
    if (slotId === null) {
      this.#ofCalls.push(attemptId);
      return;
    }
    const executor = executorOf(slotId, shard);
    const attempts = isWorker(executor) ? this.#byWorker : this.#byLane;
    const known = attempts.get(executor);
    if (known === undefined) attempts.set(executor, [attemptId]);
    else known.push(attemptId);
  }

  /** True if a lane must be notified. */
  get hasOfLanes(): boolean {
    return this.#byLane.size > 0;
  }

  /** The attempts of lanes since the last call, by the number of the lane. */
  takeOfLanes(): Map<number, string[]> {
    const attempts = this.#byLane;
    this.#byLane = new Map();
    return attempts;
  }

  /** The attempts of single calls since the last call. */
  takeOfCalls(): string[] {
    const attempts = this.#ofCalls;
    if (attempts.length > 0) this.#ofCalls = [];
    return attempts;
  }

  /** True if a group's Worker must be notified. */
  hasOfWorker(worker: number): boolean {
    return this.#byWorker.has(worker);
  }

  /** The attempts of a group's Worker since the last call. */
  takeOfWorker(worker: number): string[] {
    const attempts = this.#byWorker.get(worker) ?? [];
    this.#byWorker.delete(worker);
    return attempts;
  }
}
