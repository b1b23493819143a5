import { describe, expect, it } from "vitest";
import { BatchProgress } from "../../../../../durable-objects/run/memory/batch-progress.ts";

const group = (left: number, seq = 1) => ({ seq, batchId: "batch_a", count: 8, left });

/** After how many of the numbers of slots that are left the batch is notified. */
function notifiedAt(progress: BatchProgress, lefts: readonly number[]): number[] {
  return lefts.filter((left) => {
    progress.update(group(left));
    return progress.take().size > 0;
  });
}

describe("a batch", () => {
  it("is notified when another quarter of a group has ended, and not by its opening", () => {
    expect(notifiedAt(new BatchProgress(), [8, 7, 6, 5, 4, 3, 2, 1])).toEqual([6, 4, 2]);
  });

  it("is notified once where several quarters end at a time", () => {
    expect(notifiedAt(new BatchProgress(), [8, 1, 1])).toEqual([1]);
  });

  it("is notified of a group that an instance of the run finds half done", () => {
    expect(notifiedAt(new BatchProgress(), [4, 4])).toEqual([4]);
  });

  it("is notified once of several groups, and of the end of one", () => {
    const progress = new BatchProgress();
    for (const seq of [1, 2]) progress.update(group(8, seq));
    for (const seq of [1, 2]) progress.update(group(2, seq));
    expect([...progress.take()]).toEqual(["batch_a"]);
    progress.ended(1, "batch_a");
    progress.ended(2, "batch_b");
    expect([[...progress.take()], [...progress.take()]]).toEqual([["batch_a", "batch_b"], []]);
  });
});
