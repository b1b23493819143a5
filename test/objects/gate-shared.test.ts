/** Runs that share a gate: what one of them learns of the key holds for the others, without their asking. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { GateObject } from "../../src/index.ts";
import { GATE_PROBE_DELAYS_MS } from "../../src/limits.ts";
import { evict } from "../support/objects-direct.ts";
import { expectAtRest } from "../support/objects-group.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";
import {
  asOperator,
  expectWhole,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";

watchObjects();

/** The gate of the upstream's only key. */
const gate = (): DurableObjectStub<GateObject> => env.GATES.getByName("shared");

const group = z.looseObject({ id: z.string(), status: z.string(), counts: z.record(z.string(), z.number()) });

/**
 * Opens a batch of four, of which two are at the latch `key` of the upstream and two wait for their permits. `words` steer the
 * upstream's answers to those.
 */
async function halfStarted(
  key: string,
  words = "",
): Promise<{ run: TestRun; look: () => Promise<z.infer<typeof group>> }> {
  const run = await openRun({ max_parallel: 2 });
  const headers = { prefer: "respond-async" };
  const asked = prompts(4).map((prompt, at) => (at < 2 ? prompt : `${prompt}${words}`));
  const opened = await run.post("/batch", { prompts: asked, model: `shared/key/${key}/latch/${key}` }, { headers });
  const { id } = group.parse(await opened.json());
  await untilInFlight(key, 2);
  // It has told its gate that it is there.
  await expect.poll(async () => (await gate().status()).inFlight).toBe(2);
  return { run, look: async () => group.parse(await (await run.send("GET", `/groups/${id}`)).json()) };
}

/** How often the gate has notified a run. */
const noticesOf = (run: TestRun): number => watched(run.id).calls["gateChanged"] ?? 0;

/** Lets the two calls end, and waits until the gate knows that the other two wait for it. */
async function untilHeldUp(key: string, look: () => Promise<z.infer<typeof group>>): Promise<void> {
  await openLatch(key);
  await expect.poll(async () => (await look()).counts).toMatchObject({ completed: 2, queued: 2 });
  await expect.poll(async () => (await gate().status()).waiting).toBe(2);
}

/** Most probes of a key that was refused at this time, epoch ms. */
function probesSince(refusedAtMs: number): number {
  let dueAtMs = refusedAtMs;
  return GATE_PROBE_DELAYS_MS.filter((delayMs) => (dueAtMs += delayMs) <= Date.now()).length;
}

describe("runs of one key", () => {
  it(
    "send nothing more once it was refused for one of them, and go on when an operator resumes",
    { tags: ["slow"] },
    async () => {
      const { run, look } = await halfStarted("refused", " {{status/401/until/repaired}}");
      const other = await openRun();
      const notices = noticesOf(run);
      const refusedAtMs = Date.now();
      expect((await other.tryQuery({ prompt: "p", model: "shared/status/401" })).error).toMatchObject({ status: 401 });
      await expect.poll(async () => (await gate().status()).class).toBe("stopped");
      await expect.poll(() => noticesOf(run)).toBeGreaterThan(notices);
      await untilHeldUp("refused", look);
      // On a slow machine a probe may have been due meanwhile.
      const { requests } = await upstreamStats("refused");
      expect(requests - 2).toBeLessThanOrEqual(probesSince(refusedAtMs));
      // The run's lane has nothing to do meanwhile, and ends.
      await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBeGreaterThanOrEqual(1);
      await openLatch("repaired");
      expect((await asOperator("POST", "/upstreams/shared/resume")).status).toBe(200);
      await expect.poll(async () => (await look()).status).toBe("completed");
      expect((await upstreamStats("refused")).requests - 4).toBeLessThanOrEqual(probesSince(refusedAtMs));
    },
  );

  it("wait for the Retry-After that one of them was given", { tags: ["slow"] }, async () => {
    const { run, look } = await halfStarted("limited");
    const other = await openRun();
    const notices = noticesOf(run);
    const limited = { prompt: "p", model: "shared/status/429/retry-after/60", deadline_ms: 2_000 };
    expect((await other.tryQuery(limited)).status).toBe(429);
    await expect.poll(async () => (await gate().status()).waitMs).toBeGreaterThan(0);
    expect((await gate().status()).class).toBe("paced");
    await expect.poll(() => noticesOf(run)).toBeGreaterThan(notices);
    await untilHeldUp("limited", look);
    expect((await upstreamStats("limited")).requests).toBe(2);
    expect((await gate().status()).waitMs).toBeGreaterThan(0);
    // A report that the gate of the next test gets from them would make its calls wait for the rest of the minute.
    for (const each of [run, other]) {
      expect((await each.send("DELETE", `/runs/${each.id}`)).status).toBe(200);
      await expectAtRest(each);
    }
  });
});

describe("a gate that is lost twenty times under load", () => {
  it("holds up no call, and none is sent twice", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 32 });
    const asked = prompts(400);
    const answer = run.batch({ prompts: asked, model: "shared/key/lost-gate/jitter/40" });
    for (let times = 0; times < 20; times++) {
      await gate().status();
      await evict(gate());
    }
    expectWhole(await answer, asked);
    expect((await upstreamStats("lost-gate")).requests).toBe(400);
  });
});
