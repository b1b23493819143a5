/** After a restart the run asks its lanes: what none of them makes is made again at once, what one makes goes on. */
import { abortAllDurableObjects } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FOUND_LEASE_TTL_MS } from "../../src/limits.ts";
import { crash } from "../support/objects-direct.ts";
import { expectSettled, expectWhole, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";
import { watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a run that was restarted", () => {
  it("makes attempts again at once that died with their lanes, and charges the lost ones", async () => {
    const startedMs = Date.now();
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(12), model: "up/key/recalled-all/delay/200", max_tokens: 50 });
    await untilInFlight("recalled-all", 6);
    await abortAllDurableObjects();
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expect(Date.now() - startedMs).toBeLessThan(FOUND_LEASE_TTL_MS);
    expect(answer.items.filter(({ estimated }) => estimated)).toHaveLength(6);
    expect((await upstreamStats("recalled-all")).requests).toBe(18);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("leaves attempts alone that its lanes are still making", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(12), model: "up/key/recalled-none/delay/400", max_tokens: 50 });
    await untilInFlight("recalled-none", 6);
    await crash(run.object);
    await run.document();
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expect(answer.items.filter(({ estimated, attempts }) => estimated || attempts > 1)).toEqual([]);
    expect((await upstreamStats("recalled-none")).requests).toBe(12);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("finds its way through several restarts in a row", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(30), model: "up/key/recalled-often/delay/100", max_tokens: 50 });
    for (let restarts = 0; restarts < 4; restarts++) {
      await untilInFlight("recalled-often", 6);
      await crash(run.object);
      await run.document();
    }
    const answer = await batch;
    expectWhole(answer, prompts(30));
    expectSettled(await run.budget(), answer.usage.cost);
  });
});
