/**
 * How far the lines of a batch have come that are open in its run: they are written, and counted for good, a group at a
 * time, but whoever looks at the batch sees each. Memory only, so a restart may show a little less for a moment.
 */
import type { BatchCounts } from "../../src/batch/lifecycle.ts";
import type { GroupView } from "../run/rpc.ts";
import type { Chunk } from "./store.ts";

type Ended = Pick<BatchCounts, "completed" | "failed">;

export class Progress {
  readonly #open = new Map<number, Ended>();
  /** The most that was shown: a group that is being written counts neither twice nor not at all. */
  #shown: Ended = { completed: 0, failed: 0 };

  /** The run has told how far a group has come. */
  told({ no, nextIndex }: Chunk, { counts }: GroupView): void {
    // Of a group that is half written nobody knows which of its slots are in the other half.
    if (nextIndex === 0) this.#open.set(no, { completed: counts.completed, failed: counts.failed });
  }

  /** A group is being written: its lines count as they are. */
  written({ no }: Chunk): void {
    this.#open.delete(no);
  }

  /** The counts of lines that are written, and those that have ended beside them. */
  over(written: BatchCounts): BatchCounts {
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
