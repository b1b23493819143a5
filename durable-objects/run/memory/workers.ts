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
};

export class GroupWorkers {
  #workers = new Map<number, Worker>();

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
    if (worker !== undefined) worker.seenAtMs = nowMs;
  }

  /** The Worker claims nothing any more; its attempts in flight may still settle. */
  left(seq: number): void {
    this.#workers.delete(seq);
  }

  /**
   * Forgets Workers that were not seen for the term of a lease: lanes take their groups over. `hasSocket`: whether the Worker of
   * a group has one, at which it is seen less often.
   */
  expire(hasSocket: (seq: number) => boolean, nowMs: number): void {
    for (const [seq, { seenAtMs }] of this.#workers) {
      const termMs = hasSocket(seq) ? EXECUTOR_LEASE_MS : LEASE_TTL_MS;
      if (nowMs >= seenAtMs + termMs) this.#workers.delete(seq);
    }
  }
}
