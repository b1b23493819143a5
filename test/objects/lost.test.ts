/** Attempts of unknown outcome: retried under a new reservation, or failed, depending on `on_lost`. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash } from "../support/objects-direct.ts";
import { batchOnLanes, expectAtRest, keyed } from "../support/objects-group.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";

describe("a lane that is lost", () => {
  it("has its slots retried by default", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 2, budget: { usd: 1 } });
    const batch = batchOnLanes(run, {
      prompts: prompts(3),
      model: "up/key/lost-retry/latch/lost-retry",
      max_tokens: 50,
    });
    await loseLane(run, "lost-retry", 2);
    const answer = await batch;
    expect(answer.status).toBe("completed");
    expect(answer.items.map(({ attempts, estimated }) => [attempts, estimated])).toEqual([
      [2, true],
      [2, true],
      [1, false],
    ]);
    expect(ofType(await logOf(run), "retry_scheduled").length).toBe(2);
    await expectAtRest(run);
  });

  it("fails its slots if on_lost is fail, charged at their reservation, and the others run", async () => {
    const run = await openRun({ max_parallel: 2, budget: { usd: 1 } });
    const model = "up/key/lost-fail/latch/lost-fail";
    const batch = batchOnLanes(run, { prompts: prompts(3), model, max_tokens: 50, on_lost: "fail" });
    await loseLane(run, "lost-fail", 2);
    const answer = await batch;
    expect(answer.status).toBe("partial");
    expect(answer.errors.map((error) => error?.code ?? null)).toEqual(["upstream_error", "upstream_error", null]);
    expect(answer.items.map(({ attempts, estimated }) => [attempts, estimated])).toEqual([
      [1, true],
      [1, true],
      [1, false],
    ]);
    expect((await upstreamStats("lost-fail")).requests).toBe(3);
    expect((await run.budget()).completion_tokens.spent).toBeGreaterThanOrEqual(100);
    await expectAtRest(run);
  });

  it("fails a query with an idempotency key if on_lost is fail, and its key replays the failure", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const body = { prompt: "p", model: "up/key/lost-query/latch/lost-query", on_lost: "fail" };
    // Its client does not wait, so that a lane executes it.
    const headers = { "idempotency-key": "key", prefer: "respond-async" };
    expect((await run.post("/query", body, { headers })).status).toBe(202);
    await loseLane(run, "lost-query", 1);
    const first = await keyed(run, "key", "/query", body);
    expect(first).toMatchObject({ status: 502, json: { error: { code: "upstream_error", retryable: true } } });
    expect(await keyed(run, "key", "/query", body)).toMatchObject({ status: 502, json: first.json });
    expect((await upstreamStats("lost-query")).requests).toBe(1);
    await expectAtRest(run);
  });
});

describe("a connection that breaks before the answer", () => {
  it.each([
    { on_lost: "retry", status: "completed", attempts: 2 },
    { on_lost: "fail", status: "failed", attempts: 1 },
  ])("is an unknown outcome like a lost lane: $on_lost", { tags: ["slow"] }, async ({ on_lost, status, attempts }) => {
    const run = await openRun({ budget: { usd: 1 } });
    const model = `up/key/broken-${on_lost}/fault/reset/first/1`;
    const answer = await run.batch({ prompts: ["p"], model, max_tokens: 50, on_lost });
    expect(answer.items[0]).toMatchObject({ status, attempts, estimated: true });
    const query = await run.tryQuery({ prompt: "q", model, max_tokens: 50, on_lost });
    expect(query.status).toBe(on_lost === "retry" ? 200 : 502);
    expect((await upstreamStats(`broken-${on_lost}`)).sends).toEqual({ p: attempts, q: attempts });
    await expectAtRest(run);
  });

  it("differs from a refusal of the upstream, which is retried under on_lost fail too", async () => {
    const run = await openRun();
    const model = "up/key/refused/status/503/first/1";
    const answer = await run.batch({ prompts: ["p"], model, on_lost: "fail" });
    expect(answer.items[0]).toMatchObject({ status: "completed", attempts: 2, estimated: false });
  });
});

/** Loses a run's first lane with what it has in flight, and lets the leases be over. */
async function loseLane(run: TestRun, key: string, inFlight: number): Promise<void> {
  await untilInFlight(key, inFlight);
  await crash(env.LANE.getByName(`${run.id}/0`));
  await openLatch(key);
  await untilInFlight(key, 0);
  skipTime(LEASE_TTL_MS);
  await runDurableObjectAlarm(run.object);
}
