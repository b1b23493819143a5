/** Where a crash can fall between an answer and its record. After each, every slot has ended once, and nothing is held. */
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, loseNextSettlement } from "../support/objects-direct.ts";
import { expectAtRest, lookAt, openAsync } from "../support/objects-group.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { expectWhole, openRun, prompts, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { abortFromWithin, ringUntil } from "../support/objects-tree.ts";

describe("an answer that the upstream has given", () => {
  it.each([
    { dies: "lane", again: true },
    { dies: "run", again: false },
    { dies: "lane and run", again: true },
  ])("and $dies die before the settlement is recorded, is settled once", async ({ dies, again }) => {
    const key = `unrecorded-${dies.replaceAll(" ", "-")}`;
    const run = await openRun({ max_parallel: 6, budget: { usd: 1, calls: 100 } });
    const lost = loseNextSettlement(async (_, object, lane) => {
      if (dies !== "run") await crash(env.LANE.getByName(`${run.id}/${lane}`));
      if (dies !== "lane") abortFromWithin(object);
    });
    const batch = run.batch({ prompts: prompts(9), model: `up/key/${key}/delay/50`, max_tokens: 50 });
    await expect.poll(lost).toBe(true);
    await untilLeasesEnd(run);
    const answer = await batch;
    expectWhole(answer, prompts(9));
    // A lane that lives tells it again; what died with its lane is asked for again, and its first try stays charged.
    const twice = answer.items.filter(({ attempts }) => attempts === 2).length;
    expect(twice > 0).toBe(again);
    expect(answer.items.filter(({ estimated }) => estimated).length).toBe(twice);
    expect((await upstreamStats(key)).requests).toBe(9 + twice);
    expect((await run.budget()).calls.spent).toBe(9 + twice);
    await expectAtRest(run);
  });

  it("and whose settlement is recorded, but its reply is lost with lane and run, is not asked for again", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const lost = loseNextSettlement(async (real, object, lane) => {
      await real();
      await crash(env.LANE.getByName(`${run.id}/${lane}`));
      abortFromWithin(object);
    });
    const first = "{{delay/20}}";
    const asked = [first, ...prompts(5)];
    const batch = run.batch({ prompts: asked, model: "up/key/unheard-reply/delay/300", max_tokens: 50 });
    await expect.poll(lost).toBe(true);
    await untilLeasesEnd(run);
    const answer = await batch;
    expect(answer.items.map(({ attempts }) => attempts)).toEqual([1, 2, 2, 2, 2, 2]);
    expect((await upstreamStats("unheard-reply")).sends[first]).toBe(1);
    await expectAtRest(run);
  });

  it("is neither lost nor asked for again where its run is evicted and it is told to the next instance", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const id = await openAsync(run, { prompts: prompts(12), model: "up/key/evicted/delay/100" });
    await untilInFlight("evicted", 6);
    await evictDurableObject(run.object);
    expect(await lookAt(run, id, 5_000)).toMatchObject({ status: "completed" });
    expect((await upstreamStats("evicted")).requests).toBe(12);
    await expectAtRest(run);
  });
});

describe("everything that dies at once", () => {
  it("in flight, with batches and queries under way, loses no slot and tells each once", async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 0.05 } });
    const model = "up/key/all/delay/80/jitter/80";
    const waited = run.batch({ prompts: prompts(24), model, max_tokens: 50 });
    const left = await openAsync(run, { prompts: prompts(12, "left"), model, max_tokens: 50 });
    const queries = prompts(4, "alone").map((prompt) => run.query({ prompt, model, max_tokens: 50 }));
    await untilInFlight("all", 12);
    await abortAllDurableObjects();
    await untilLeasesEnd(run);
    expectWhole(await waited, prompts(24));
    expect((await Promise.all(queries)).map(({ text }) => text)).toEqual(prompts(4, "alone"));
    await ringUntil([run], async () => (await run.object.waitGroup(2, 0))?.status === "completed");
    expect((await upstreamStats("all")).requests).toBeLessThanOrEqual(40 + 12);
    await expectAtRest(run);
    expect(ofType(await logOf(run), "group_completed").map((line) => line.parallel_group_id)).toContain(left);
  });

  it("again and again, loses no slot, tells each once and never spends more than there is", async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 0.02, calls: 150 } });
    const id = await openAsync(run, {
      prompts: prompts(60),
      model: "up/key/often/delay/40/jitter/60/status/503/first/1/percent/10",
      max_tokens: 20,
    });
    for (let round = 0; round < 5; round++) {
      await scheduler.wait(60);
      if (round % 2 === 0) await abortAllDurableObjects();
      else await crash(run.object);
      await untilLeasesEnd(run);
    }
    await ringUntil([run], async () => (await run.object.waitGroup(1, 0))?.status !== "running");
    const results = await run.object.results(1, 0);
    expect(results.map(({ state, text }) => [state, text])).toEqual(prompts(60).map((prompt) => ["completed", prompt]));
    await expectAtRest(run);
    expect(ofType(await logOf(run), "group_completed").map((line) => line.parallel_group_id)).toEqual([id]);
  });
});

describe("a group that was cancelled", () => {
  it("stays cancelled in a run that is lost right after it, and tells its end once", async () => {
    const run = await openRun({ max_parallel: 4 });
    await openAsync(run, { prompts: prompts(40), model: "up/key/lost-cancel/delay/15000" });
    await untilInFlight("lost-cancel", 4);
    await run.object.cancelGroup(1);
    await abortAllDurableObjects();
    expect((await run.object.waitGroup(1, 0))?.counts).toMatchObject({ cancelled: 40, queued: 0, running: 0 });
    await expectAtRest(run);
  });
});

/** Lets the leases that a restarted run has found be over. */
async function untilLeasesEnd(run: TestRun): Promise<void> {
  // The first question wakes the new instance, and the found leases' terms begin.
  await expect.poll(() => run.object.budget().catch(() => null)).not.toBeNull();
  skipTime(LEASE_TTL_MS);
}
