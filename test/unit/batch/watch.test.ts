/** What a batch knows of the groups that it has open in its run, and when it looks at them. */
import { describe, expect, it } from "vitest";
import { Progress } from "../../../durable-objects/batch/progress.ts";
import type { Chunk } from "../../../durable-objects/batch/store.ts";
import { Watch } from "../../../durable-objects/batch/watch.ts";
import { BATCH_CHUNKS_OPEN, BATCH_FRESH_MS, BATCH_GROUPS_OPEN_MAX } from "../../../src/limits.ts";
import type { GroupView } from "../../../src/objects/methods/groups.ts";
import type { RunStub } from "../../../src/objects/clients/caller.ts";
import { groupView } from "../http/replies/views.ts";

const COUNT = 64;
const chunk = (no: number): Chunk => ({ no, seq: no + 1, firstIndex: no * COUNT, count: COUNT, nextIndex: 0 });
const chunksOf = (count: number): Chunk[] => Array.from({ length: count }, (_, no) => chunk(no));

const NO_LINES = { total: 2 * COUNT, completed: 0, failed: 0 };

/** A group of which so many slots have completed. */
function viewOf(completed: number): GroupView {
  const counts = { queued: COUNT - completed, running: 0, completed, failed: 0, skipped: 0, cancelled: 0 };
  return groupView(COUNT, { counts, status: completed === COUNT ? "completed" : "running" });
}

/** A watch of groups whose state a test sets, and the number of calls to their run. */
function watching(completed: number[]) {
  const progress = new Progress();
  let calls = 0;
  const stub: unknown = { waitGroup: async (seq: number) => viewOf(completed[seq - 1] ?? 0) };
  const isStub = (value: unknown): value is RunStub => value === stub;
  const callWithRetry = async <T>(call: (run: RunStub) => PromiseLike<T>): Promise<T> => {
    calls += 1;
    if (!isStub(stub)) throw new Error("the test has another stub");
    return await call(stub);
  };
  return { watch: new Watch({ callWithRetry }, progress), progress, calls: () => calls };
}

describe("a batch", () => {
  it("finds a group that has ended, and does not look while it knows of one", async () => {
    const { watch, calls } = watching([3, COUNT]);
    const chunks = chunksOf(2);
    expect(await watch.look(chunks, 0)).toEqual(chunks[1]);
    expect([await watch.look(chunks, 1), calls()]).toEqual([chunks[1], 2]);
    watch.forget(chunk(1));
    expect([await watch.look(chunks.slice(0, 1), 2), calls()]).toEqual([null, 3]);
  });

  it("has room for another group once as much has ended as one group has, in whichever", async () => {
    const chunks = chunksOf(BATCH_CHUNKS_OPEN);
    const before = watching([COUNT - 1]);
    await before.watch.look(chunks, 0);
    expect([before.watch.hasRoom(chunks.slice(1)), before.watch.hasRoom(chunks)]).toEqual([true, false]);
    const after = watching([COUNT - 1, 1]);
    await after.watch.look(chunks, 0);
    expect(after.watch.hasRoom(chunks)).toBe(true);
  });

  it("has room for no more groups than one batch may have open", async () => {
    const all = chunksOf(BATCH_GROUPS_OPEN_MAX);
    const { watch } = watching(all.map(() => COUNT - 1));
    await watch.look(all, 0);
    expect([watch.hasRoom(all), watch.hasRoom(all.slice(1))]).toEqual([false, true]);
  });

  it("looks for a client that reads it unless it has just looked", async () => {
    const { watch, progress, calls } = watching([3]);
    const chunks = chunksOf(1);
    const startMs = 1_000_000;
    await watch.refresh(chunks, startMs);
    expect(progress.countsWith(NO_LINES)).toEqual({ total: 2 * COUNT, completed: 3, failed: 0 });
    await watch.refresh(chunks, startMs + BATCH_FRESH_MS - 1);
    expect(calls()).toBe(1);
    await watch.refresh(chunks, startMs + BATCH_FRESH_MS);
    expect(calls()).toBe(2);
  });

  it("counts the lines of a group once, also if a look ends after they were written", async () => {
    const { watch, progress } = watching([COUNT]);
    const looking = watch.refresh(chunksOf(1), 1_000_000);
    progress.written(chunk(0));
    await looking;
    expect(progress.countsWith({ ...NO_LINES, completed: COUNT })).toMatchObject({ completed: COUNT });
  });
});
