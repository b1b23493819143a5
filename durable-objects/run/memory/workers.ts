/**
 * Groups whose client's Worker executes them. In memory only: a Worker that is there names itself with its next claim, and
 * until then lanes serve its group beside it.
 */
import { EXECUTOR_LEASE_MS, LEASE_TTL_MS } from "../../../src/limits.ts";
import type { EndedReply, WorkerState } from "../../../src/objects/methods/groups.ts";

type Worker = {
  seenAtMs: number;
  /** How many attempts it can hold at once, if it has been full while slots waited; null = it needs no lanes. */
  covers: number | null;
  /** The ended slots that it has been sent, if it shows them as they end. */
  shown?: EndedReply["cursor"] | undefined;
  /** Whether its socket has broken, and it was not heard of since. */
  isDoubted?: boolean;
};

export class GroupWorkers {
  #workers = new Map<number, Worker>();
  /** Open groups that others than their Workers have asked for. */
  readonly #awaited = new Set<number>();

  /** The Worker of a group; undefined if lanes alone serve it. */
  of(seq: number): Readonly<Worker> | undefined {
    return this.#workers.get(seq);
  }

  /** The Worker of a group has claimed. */
  claimed(
    seq: number,
    { covers, after: shown }: Pick<WorkerState, "covers"> & { after?: Worker["shown"] },
    nowMs: number,
  ): void {
    this.#workers.set(seq, { seenAtMs: nowMs, covers, shown });
  }

  /** The Worker is sent the slots that have ended up to this cursor. */
  shown(seq: number, cursor: EndedReply["cursor"]): void {
    const worker = this.#workers.get(seq);
    if (worker !== undefined) worker.shown = cursor;
  }

  /** The Worker of a group is alive. */
  seen(seq: number, nowMs: number): void {
    const worker = this.#workers.get(seq);
    if (worker === undefined) return;
    worker.seenAtMs = nowMs;
    worker.isDoubted = false;
  }

  /** The socket of a group's Worker has broken. */
  doubted(seq: number): void {
    const worker = this.#workers.get(seq);
    if (worker !== undefined) worker.isDoubted = true;
  }

  /** Someone else than its Worker asks for an open group: the Worker's loss must be found in time from now on. */
  awaited(seq: number): void {
    this.#awaited.add(seq);
  }

  /** Whether a group's Worker serves it alone, nothing speaks for the Worker's loss, and nobody else has asked for the group. */
  isAlone(seq: number): boolean {
    const worker = this.#workers.get(seq);
    return worker?.covers === null && worker.isDoubted !== true && !this.#awaited.has(seq);
  }

  /** The Worker claims nothing any more; its attempts in flight may still settle. */
  left(seq: number): void {
    this.#workers.delete(seq);
  }

  /** The group has ended. */
  ended(seq: number): void {
    this.#workers.delete(seq);
    this.#awaited.delete(seq);
  }

  /**
   * Forgets Workers that were not seen for the term of a lease: lanes take their groups over. `hasSocket`: whether the Worker of
   * a group has one, at which it is seen less often. Returns whether there were any.
   */
  expire(hasSocket: (seq: number) => boolean, nowMs: number): boolean {
    const before = this.#workers.size;
    for (const [seq, { seenAtMs }] of this.#workers) {
      const termMs = hasSocket(seq) ? EXECUTOR_LEASE_MS : LEASE_TTL_MS;
      if (nowMs >= seenAtMs + termMs) this.#workers.delete(seq);
    }
    return this.#workers.size < before;
  }
}
