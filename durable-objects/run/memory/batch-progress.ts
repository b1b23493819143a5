/**
 * When the batches that feed a run are notified: each time another quarter of one of their groups has ended, and when a group
 * has. A batch sleeps in between. In memory only: after a restart, each batch with an open group is notified once more.
 */

/** A group of a batch, and how many of its slots have not ended. */
export type BatchGroup = { seq: number; batchId: string; count: number; left: number };

/** Parts of a group after each of which its batch looks: the queue of the others lasts for longer. */
const PARTS = 4;

export class BatchProgress {
  /** Parts that had not ended when the batch was last notified, by the number of the group. */
  readonly #parts = new Map<number, number>();
  #moved = new Set<string>();

  /** Takes the present state of an open group. */
  update({ seq, batchId, count, left }: BatchGroup): void {
    const parts = Math.ceil((left * PARTS) / count);
    const before = this.#parts.get(seq);
    if (parts === before) return;
    this.#parts.set(seq, parts);
    // The opener of a new group knows that none of its slots has ended.
    if (before !== undefined || left < count) this.#moved.add(batchId);
  }

  /** The group has ended. */
  ended(seq: number, batchId: string): void {
    this.#parts.delete(seq);
    this.#moved.add(batchId);
  }

  /** The batches to notify, by id. */
  take(): ReadonlySet<string> {
    const moved = this.#moved;
    if (moved.size > 0) this.#moved = new Set();
    return moved;
  }
}
