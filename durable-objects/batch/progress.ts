/**
 * Progress of a batch's lines that are open in its run. Lines are written, and counted for good, a group at a time; this
 * adds those that have ended meanwhile, for clients that read the batch. In memory only, so a restart may show less.
 */
import type { BatchCounts } from "../../src/batch/lifecycle.ts";
import type { GroupView } from "../../src/objects/methods/groups.ts";
import type { Chunk } from "./store.ts";

type Ended = Pick<BatchCounts, "completed" | "failed">;

export class Progress {
  readonly #open = new Map<number, Ended>();
  /** Groups whose lines are written, or being written: a look that began before may end later. */
  readonly #written = new Set<number>();
  /** The most that was shown: counts never fall while a group is being written. */
  #shown: Ended = { completed: 0, failed: 0 };

  /** Takes the present state of a group. */
  update({ no, nextIndex }: Chunk, { counts }: GroupView): void {
    // If a part of the group is written, its counts do not say which slots are in the other part.
    if (nextIndex === 0 && !this.#written.has(no))
      this.#open.set(no, { completed: counts.completed, failed: counts.failed });
  }

  /** A group is being written: its lines are counted as they are written. */
  written({ no }: Chunk): void {
    this.#open.delete(no);
    this.#written.add(no);
  }

  /** The counts of lines that are written, plus those that have ended in open groups. */
  countsWith(written: BatchCounts): BatchCounts {
    let { completed, failed } = written;
    for (const ended of this.#open.values()) {
      completed += ended.completed;
      failed += ended.failed;
    }
    this.#shown = {
      completed: Math.max(this.#shown.completed, completed),
      failed: Math.max(this.#shown.failed, failed),
    };
    return { total: written.total, ...this.#shown };
  }
}
