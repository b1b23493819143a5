/** Large groups arrive in pieces. What is never opened, or refused, stays nowhere. */
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { STAGED_KEPT_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { openingOf, pagesOf } from "../support/objects-direct.ts";
import { alarmOf, keyed, rowCounts } from "../support/objects-group.ts";
import { openRun, prompts, upstreamStats } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("pages of a group that is never opened", () => {
  it.each(["the instance that took them", "the next one"])("are dropped when their time is over by %s", async (who) => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const { pages } = pagesOf(["staged"], "up/key/abandoned");
    expect(await run.object.stagePages("abandoned", pages)).toBeNull();
    if (who === "the next one") await evictDurableObject(run.object);
    skipTime(STAGED_KEPT_MS - 1_000);
    await runDurableObjectAlarm(run.object);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
    // Its own alarm comes for it.
    expect(await alarmOf(run)).toBeLessThanOrEqual(Date.now() + 1_000);
    skipTime(1_000);
    await runDurableObjectAlarm(run.object);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    expect((await upstreamStats("abandoned")).requests).toBe(0);
  });

  it("can still be opened until then, and are never dropped once they are", async () => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const first = pagesOf(["first"], "up/key/late");
    await run.object.stagePages("late", first.pages);
    skipTime(STAGED_KEPT_MS - 1_000);
    const opened = await run.object.openGroup({ ...openingOf(1, first.models), openKey: "late" }, []);
    expect(opened.ok).toBe(true);
    skipTime(1_000);
    await runDurableObjectAlarm(run.object);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });

  it("that come again after an answer was lost are stored once", async () => {
    const run = await openRun();
    const { pages } = pagesOf(["staged"], "up/key/staged-twice");
    await run.object.stagePages("twice", pages);
    await run.object.stagePages("twice", pages);
    await evictDurableObject(run.object);
    await run.object.stagePages("twice", pages);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });
});

describe("a large batch under an Idempotency-Key that is refused", () => {
  it("leaves nothing stored, and its key is free for another try", async () => {
    const run = await openRun({ models: ["up/key/allowed*"] });
    const large = prompts(40).map((prompt) => prompt.padEnd(60_000, "."));
    const refused = await keyed(run, "key", "/batch", { prompts: large, model: "up/echo" });
    expect(refused).toMatchObject({ status: 403, json: { error: { code: "model_not_allowed" } } });
    expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(1);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0, named: 0, slot: 0 });
    const accepted = await keyed(run, "key", "/batch", { prompts: ["small"], model: "up/key/allowed" });
    expect(accepted).toMatchObject({ status: 200, replayed: false, json: { results: ["small"] } });
  });
});
