import { describe, expect, it } from "vitest";
import { openAsync } from "../support/objects-group.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats, type BatchAnswer } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a run of width 64, where an object has six fetches", () => {
  it("has 64 slots of one batch in flight at once", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 64 });
    const answer = await run.batch({
      prompts: prompts(64),
      model: "up/key/width-batch/barrier/64/within/30000",
      concurrency: 64,
    });
    expect(statuses(answer)).toEqual({ completed: 64 });
    expect(answer.results).toEqual(prompts(64));
    expect((await upstreamStats("width-batch")).requests).toBe(64);
    expect(watched(run.id).runFetches).toBe(0);
    // The client's Worker has six of them, and lanes the others.
    expect(Object.values(watched(run.id).lanePeaks).toSorted((a, b) => b - a)).toEqual([
      ...Array<number>(9).fill(6),
      4,
    ]);
  });

  it("has 64 slots of a batch without a client in flight at once, all in lanes", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 64 });
    await openAsync(run, { prompts: prompts(64), model: "up/key/width-async/barrier/64/within/30000" });
    await expect
      .poll(async () => (await run.object.waitGroup(1, 20_000))?.status, { timeout: 30_000 })
      .toBe("completed");
    expect((await upstreamStats("width-async")).requests).toBe(64);
    expect(Object.values(watched(run.id).lanePeaks).toSorted((a, b) => b - a)).toEqual([
      ...Array<number>(10).fill(6),
      4,
    ]);
  });

  it("needs no lane for a batch that six calls of the client's Worker can make", async () => {
    const run = await openRun({ max_parallel: 6 });
    const answer = await run.batch({ prompts: prompts(30), model: "up/key/width-worker/delay/5" });
    expect(statuses(answer)).toEqual({ completed: 30 });
    expect(answer.metrics.peak_parallel).toBe(6);
    expect(watched(run.id).laneStarts).toBe(0);
  });

  it("has 64 queries of 64 Worker requests in flight at once", async () => {
    const run = await openRun({ max_parallel: 64 });
    const send = (prompt: string) => run.query({ prompt, model: "up/key/width-query/barrier/64/within/30000" });
    const answers = await Promise.all(prompts(64).map(send));
    expect(answers.map(({ text }) => text)).toEqual(prompts(64));
    expect((await upstreamStats("width-query")).requests).toBe(64);
    expect(watched(run.id).runFetches).toBe(0);
    expect(watched(run.id).laneStarts).toBe(0);
  });

  it("never has a 65th in flight, however many the batch requests", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 64 });
    const model = "plain/key/width-over/latch/width-over";
    const batch = run.batch({ prompts: prompts(130), model, concurrency: 130 });
    await untilInFlight("width-over", 64);
    await openLatch("width-over");
    const answer = await batch;
    expect(answer.effective_parallel).toBe(64);
    expect(answer.metrics.peak_parallel).toBe(64);
    expect((await upstreamStats("width-over")).peakInFlight).toBeLessThanOrEqual(64);
  });
});

describe("a lane", () => {
  it("never has more than six fetches in flight, in a batch larger than its lanes", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 20 });
    const batch = run.batch({ prompts: prompts(120), model: "plain/key/six/delay/5/jitter/40/latch/six" });
    await untilInFlight("six", 20);
    await openLatch("six");
    const answer = await batch;
    expect(statuses(answer)).toEqual({ completed: 120 });
    expect(answer.metrics.peak_parallel).toBe(20);
    const peaks = Object.values(watched(run.id).lanePeaks);
    expect(peaks).toHaveLength(3);
    expect(Math.max(...peaks)).toBeLessThanOrEqual(6);
    expect((await upstreamStats("six")).peakInFlight).toBeLessThanOrEqual(20);
    expect(watched(run.id).runFetches).toBe(0);
  });
});

describe("object calls", () => {
  it(
    "go from the Worker to lanes to the run and no further: the run takes no lane's stub while it serves a call",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 16 });
      await run.batch({ prompts: prompts(48), model: "plain/key/depth/delay/20/status/503/first/1/percent/20" });
      const seen = watched(run.id);
      expect([...seen.laneStubsTakenBy]).toEqual(["worker"]);
      expect(seen.laneStarts).toBe(2);
      expect(seen.strangersCalledByLanes).toEqual([]);
    },
  );
});

function statuses(answer: BatchAnswer): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answer.items) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
