/** A client's Worker as the executor of its group, as its run sees it: claims, leaving, silence, lost replies. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { workerOf } from "../../src/run/leases/shard.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import type { ClaimReply, EndedReply, WorkerState } from "../../src/objects/methods/groups.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, openAsWorker, SUCCESS } from "../support/objects-direct.ts";
import { expectAtRest } from "../support/objects-group.ts";
import { openRun, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const THERE: WorkerState = { covers: null, asksForLanes: false, leaves: false, holds: null, gaveUp: [] };

/** An attempt that its Worker has aborted. */
const CANCELLED = {
  kind: "failure",
  reason: { reason: "cancelled", message: "the call was cancelled while the upstream worked on it" },
  answered: false,
  retryAfterMs: null,
  latencyMs: 10,
} as const;

/** A claim of the Worker of a run's first group. */
function claim(run: TestRun, answered: string[], state: Partial<WorkerState> = {}, capacity = 0, waits = false) {
  const settlements = answered.map((attemptId) => ({ attemptId, outcome: SUCCESS }));
  return run.object.settleAndClaim(workerOf(1), settlements, capacity, waits, { ...THERE, ...state });
}

const idsOf = ({ jobs }: ClaimReply): string[] => jobs.map(({ lease }) => lease.attemptId);
const attemptsOf = async (run: TestRun): Promise<number[]> =>
  (await run.object.results(1, 0)).map(({ attempts }) => attempts);
const statusOf = async (run: TestRun): Promise<string | undefined> => (await run.object.waitGroup(1, 0))?.status;

describe("a Worker that opens a group", () => {
  it("gets its first attempts with the reply, and no lane is started", async () => {
    const run = await openRun({ max_parallel: 8 });
    const first = await openAsWorker(run, { count: 20, key: "worker-first", capacity: 48 });
    expect(idsOf(first)).toHaveLength(8);
    expect((await run.budget()).calls.reserved).toBe(8);
    const answered = idsOf(first).slice(0, 5);
    const next = await claim(run, answered, {}, 48);
    expect(idsOf(next)).toHaveLength(5);
    expect(next.group?.ended.map(({ index, state }) => [index, state])).toEqual([
      [0, "completed"],
      [1, "completed"],
      [2, "completed"],
      [3, "completed"],
      [4, "completed"],
    ]);
    // The Worker has the texts.
    expect(next.group?.ended.every((slot) => !("text" in slot))).toBe(true);
    expect(watched(run.id).laneStarts).toBe(0);
  });

  it("learns of its group's end with its last settlement, and the texts are stored", async () => {
    const run = await openRun({ max_parallel: 8 });
    const first = await openAsWorker(run, { count: 3, key: "worker-last", capacity: 8 });
    const last = await claim(run, idsOf(first));
    expect(last.group?.view).toMatchObject({ status: "completed", counts: { completed: 3 } });
    expect((await run.object.results(1, 0)).map(({ text }) => text)).toEqual(["t", "t", "t"]);
    await expectAtRest(run);
  });

  it("whose reply was lost gets other attempts for what it never knew of, which stays charged", async () => {
    const run = await openRun({ max_parallel: 4, budget: { calls: 20 } });
    const openKey = crypto.randomUUID();
    await openAsWorker(run, { count: 4, key: "worker-reopen", capacity: 4 }, { openKey });
    await openAsWorker(run, { count: 4, key: "worker-reopen", capacity: 4 }, { openKey });
    expect((await run.object.waitGroup(1, 0))?.count).toBe(4);
    expect((await run.budget()).calls.spent).toBe(4);
  });
});

describe("a Worker that shows slots as they end", () => {
  it("gets with each reply what has ended since the last, by itself or by others, in order", async () => {
    const run = await openRun({ max_parallel: 4 });
    const first = await openAsWorker(run, { count: 6, key: "worker-shows", capacity: 4 });
    expect(first.group).toMatchObject({ ended: [], upTo: { cursor: { position: 0 }, hasMore: false } });
    await run.object.cancelSlot(1, 5);
    const answered = idsOf(first).slice(0, 2);
    const next = await claim(run, answered, { after: cursorOf(first) });
    expect(next.group?.ended.map(({ index, state, text }) => [index, state, text])).toEqual([
      [5, "cancelled", null],
      // It has these texts.
      [0, "completed", undefined],
      [1, "completed", undefined],
    ]);
    // A reply that was lost comes once more, with the texts: whether the Worker still has them is not known.
    const repeated = await claim(run, answered, { after: cursorOf(first) });
    expect(repeated.group?.ended.map(({ index, text }) => [index, text])).toEqual([
      [5, null],
      [0, "t"],
      [1, "t"],
    ]);
    expect(cursorOf(repeated)).toEqual(cursorOf(next));
    expect((await claim(run, [], { after: cursorOf(next) })).group?.ended).toEqual([]);
  });

  it("does not wait in the run while others end slots", async () => {
    const run = await openRun({ max_parallel: 4 });
    const first = await openAsWorker(run, { count: 6, key: "worker-shows-others", capacity: 4 });
    const waiting = claim(run, [], { after: cursorOf(first) }, 4, true);
    await run.object.cancelSlot(1, 5);
    expect((await waiting).group?.ended.map(({ index }) => index)).toEqual([5]);
  });

  it("must read from the start what it names by an instance that is gone", async () => {
    const run = await openRun({ max_parallel: 4 });
    const first = await openAsWorker(run, { count: 2, key: "worker-shows-restart", capacity: 4 });
    const [, other = ""] = idsOf(first);
    await claim(run, idsOf(first).slice(0, 1), { after: cursorOf(first) });
    await crash(run.object);
    await expect.poll(() => run.object.budget().catch(() => null)).not.toBeNull();
    const next = await claim(run, [], { holds: [other], after: cursorOf(first) });
    expect([next.group?.ended, next.group?.upTo]).toEqual([[], undefined]);
    const read = await run.object.endedSlots(1, cursorOf(first), 0);
    expect(read?.slots.map(({ index, text }) => [index, text])).toEqual([[0, "t"]]);
    const last = await claim(run, [other], read === null ? {} : { after: read.cursor });
    expect([last.group?.view?.status, last.group?.ended.map(({ index }) => index)]).toEqual(["completed", [1]]);
  });
});

/** How far a reply goes in the order in which slots end. */
function cursorOf({ group }: ClaimReply): EndedReply["cursor"] {
  if (group?.upTo === undefined) throw new Error("the reply does not say how far it goes");
  return group.upTo.cursor;
}

describe("a Worker that leaves", () => {
  it("settles what it has in flight; lanes make the rest, and nothing is sent twice", async () => {
    const run = await openRun({ max_parallel: 4 });
    const first = await openAsWorker(run, { count: 12, key: "worker-leaves", capacity: 4 });
    const left = await claim(run, [], { leaves: true, asksForLanes: true }, 4);
    expect([idsOf(left), left.group?.lanes]).toEqual([[], [0]]);
    await claim(run, idsOf(first), { leaves: true }, 4);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 20_000 }).toBe("completed");
    expect(await attemptsOf(run)).toEqual(Array<number>(12).fill(1));
    expect((await upstreamStats("worker-leaves")).requests).toBe(8);
    await expectAtRest(run);
  });

  it("and gives attempts up has them charged, and made once more by lanes", async () => {
    const run = await openRun({ max_parallel: 4, budget: { calls: 50 } });
    const first = await openAsWorker(run, { count: 6, key: "worker-gives-up", capacity: 4 });
    await claim(run, [], { leaves: true, gaveUp: idsOf(first) });
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 20_000 }).toBe("completed");
    expect(await attemptsOf(run)).toEqual([2, 2, 2, 2, 1, 1]);
    expect((await upstreamStats("worker-gives-up")).requests).toBe(6);
    expect((await run.budget()).calls.spent).toBe(10);
    await expectAtRest(run);
  });
});

describe("a Worker that leaves and aborts what it gives up", () => {
  it("has it made once more if the aborted ends come with the claim that gives it up, and keeps an answer that came before", async () => {
    const run = await openRun({ max_parallel: 4, budget: { calls: 50 } });
    const given = idsOf(await openAsWorker(run, { count: 4, key: "worker-aborts", capacity: 4 }));
    const [answered = "", unsent = "", ...aborted] = given;
    const unknown = { ...CANCELLED, class: "unknown" } as const;
    const settlements = [
      { attemptId: answered, outcome: SUCCESS },
      { attemptId: unsent, outcome: { ...CANCELLED, class: "rejected" } as const },
      ...aborted.map((attemptId) => ({ attemptId, outcome: unknown })),
    ];
    await run.object.settleAndClaim(workerOf(1), settlements, 0, false, { ...THERE, leaves: true, gaveUp: given });
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 20_000 }).toBe("completed");
    expect(await attemptsOf(run)).toEqual([1, 2, 2, 2]);
    // One that was not sent costs nothing: an answer, two aborted attempts, and three further ones.
    expect((await run.budget()).calls.spent).toBe(6);
    await expectAtRest(run);
  });
});

describe("a Worker that ends without a word", () => {
  it("has its attempts charged and made once more by lanes when its leases have expired", async () => {
    const run = await openRun({ max_parallel: 4, budget: { calls: 50 } });
    await openAsWorker(run, { count: 6, key: "worker-dies", capacity: 4 });
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 20_000 }).toBe("completed");
    expect(await attemptsOf(run)).toEqual([2, 2, 2, 2, 1, 1]);
    expect((await run.budget()).calls.spent).toBe(10);
    await expectAtRest(run);
  });
});

describe("the Worker of a stored query that ends without a word", () => {
  it.each([
    { onLost: "retry", state: "completed", attempts: 2, requests: 1 },
    { onLost: "fail", state: "failed", attempts: 1, requests: 0 },
  ] as const)("has it charged, and a lane follows on_lost: $onLost", async ({ onLost, state, attempts, requests }) => {
    const run = await openRun({ budget: { calls: 5 } });
    const key = `worker-query-${onLost}`;
    await openAsWorker(run, { count: 1, key, capacity: 1 }, { single: true, concurrency: 1, onLost });
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 8_000 }).toBe(state);
    expect(await run.object.results(1, 0)).toMatchObject([{ state, attempts }]);
    expect((await upstreamStats(key)).requests).toBe(requests);
    expect((await run.budget()).calls.spent).toBe(attempts);
    await expectAtRest(run);
  });
});

describe("a run that restarts under a Worker", () => {
  it("keeps the attempts that the Worker has, and loses those of a reply that never came", async () => {
    const run = await openRun({ max_parallel: 4, budget: { calls: 50 } });
    const [kept = "", ...others] = idsOf(await openAsWorker(run, { count: 4, key: "worker-restart", capacity: 4 }));
    await crash(run.object);
    await expect.poll(() => run.object.budget().catch(() => null)).not.toBeNull();
    await claim(run, [], { holds: [kept] });
    expect(others).toHaveLength(3);
    await claim(run, [kept], { leaves: true });
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 20_000 }).toBe("completed");
    expect(await attemptsOf(run)).toEqual([1, 2, 2, 2]);
    await expectAtRest(run);
  });
});

describe("a slot that is cancelled", () => {
  it("is named at once to the Worker that waits for the end of its group", async () => {
    const run = await openRun({ max_parallel: 4 });
    const [, second = ""] = idsOf(await openAsWorker(run, { count: 2, key: "worker-cancel", capacity: 4 }));
    const waiting = claim(run, [], {}, 4, true);
    await run.object.cancelSlot(1, 1);
    expect((await waiting).group?.aborted).toEqual([second]);
  });
});

describe("a Worker that cannot hold as many attempts as the run allows", () => {
  it("is named the lanes that must join it, once it says so", async () => {
    const run = await openRun({ max_parallel: 20 });
    await openAsWorker(run, { count: 30, key: "worker-full", capacity: 6 });
    const alone = await claim(run, [], {}, 6);
    expect([alone.claimMore, alone.group?.lanes]).toEqual([true, []]);
    const full = await claim(run, [], { covers: 6, asksForLanes: true }, 6);
    // Fourteen attempts are left for lanes of six.
    expect(full.group?.lanes).toEqual([0, 1, 2]);
    expect((await claim(run, [], { covers: 6 }, 6)).group?.lanes).toEqual([]);
  });
});
