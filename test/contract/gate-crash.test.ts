/** The gate's object dies twenty times under load, alone and in real workerd: the runs keep to the limit that it had found. */
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { presentVersion, startGateway, type Gateway } from "../support/gateway.ts";
import { steady } from "../support/limited/latency.ts";
import type { Limiter } from "../support/limited/limiter.ts";
import { OpenAiLimiter } from "../support/limited/openai-limiter.ts";
import { inFlightLimiter } from "../support/limited/other-limiters.ts";
import { startLimitedServer, type LimitedServer } from "../support/limited/server.ts";

const DEATHS = 20;
const WIDTH = 32;
const CALL_MS = 20;

const died = z.object({ epoch: z.number() });
const gates = z.looseObject({ data: z.array(z.looseObject({ class: z.string() })) });
const group = z.looseObject({ id: z.string(), status: z.string(), counts: z.record(z.string(), z.int()) });

type Place = { gateway: Gateway; provider: LimitedServer };

async function startPlace(limiter: Limiter): Promise<Place> {
  const provider = await startLimitedServer(limiter, steady(CALL_MS));
  // A call may be refused after several of the twenty deaths.
  const up = { kind: "openai", base_url: provider.baseUrl, api_key: "key", models: ["*"], max_attempts: 10 };
  const vars = { UPSTREAMS: { up: { ...up, prices: { "*": { input: 1, output: 1 } } } }, DEFAULT_MODEL: "up/m" };
  const gateway = await startGateway({
    vars,
    script: await presentVersion("test/support/fixtures/aborting-worker.ts"),
  });
  onTestFinished(async () => {
    await gateway.stop();
    await provider.stop();
  });
  return { gateway, provider };
}

/** Opens a batch in a run of its own. A look at it waits for its end. */
async function openBatch({ gateway }: Place, slots: number): Promise<() => Promise<z.infer<typeof group>>> {
  const { token } = await gateway.openRun({ max_parallel: WIDTH, budget: { usd: 10 } });
  const prompts = Array.from({ length: slots }, (_, at) => `${token.slice(-8)} ${at}`);
  const json = { prompts, max_tokens: 16 };
  const opened = await gateway.fetch("/batch", { token, headers: { prefer: "respond-async" }, json });
  const { id } = group.parse(await opened.json());
  return async () => group.parse(await (await gateway.fetch(`/groups/${id}?wait_ms=20000`, { token })).json());
}

/** Ends the gate twenty times, each time after some calls were admitted. Returns the instances that died. */
async function killGate({ gateway, provider }: Place, calls: { between: number; all: number }): Promise<Set<number>> {
  const epochs = new Set<number>();
  for (let death = 0; death < DEATHS; death += 1) {
    // A machine may be so slow that all calls end before the last death.
    const next = Math.min(calls.all, provider.admitted().length + calls.between);
    await expect.poll(() => provider.admitted().length).toBeGreaterThanOrEqual(next);
    const answer = await gateway.fetch("/__abort/up", { method: "POST" });
    expect(answer.status).toBe(200);
    epochs.add(died.parse(await answer.json()).epoch);
  }
  return epochs;
}

async function classOf({ gateway }: Place): Promise<string | undefined> {
  const answer = await gateway.fetch("/upstreams", { token: gateway.adminKey });
  return gates.parse(await answer.json()).data[0]?.class;
}

/** Each prompt was answered once: nothing was lost with the gate, and nothing sent twice. */
async function expectAllOnce(
  { provider }: Place,
  looks: readonly (() => Promise<z.infer<typeof group>>)[],
  slots: number,
): Promise<void> {
  for (const look of looks) {
    await expect.poll(async () => (await look()).status, { timeout: 100_000 }).toBe("completed");
    expect((await look()).counts).toMatchObject({ completed: slots });
  }
  const prompts = provider.admitted().map(({ prompt }) => prompt);
  expect(prompts.length).toBe(slots * looks.length);
  expect(new Set(prompts).size).toBe(prompts.length);
}

describe("a gate that dies twenty times under load", () => {
  it("does not forget that the width is limited", { tags: ["slow"] }, async () => {
    const place = await startPlace(inFlightLimiter(8));
    const looks = [await openBatch(place, 400), await openBatch(place, 400)];
    await expect.poll(() => classOf(place)).toBe("shrunk");
    const refusedBefore = place.provider.rejected().length;
    const epochs = await killGate(place, { between: 15, all: 800 });
    expect(epochs.size).toBe(DEATHS);
    // The last instance knows it from its row, or from the first report: a run may not have exchanged with it yet.
    await expect.poll(() => classOf(place)).toBe("shrunk");
    await expectAllOnce(place, looks, 400);
    // If each instance began as one that knows nothing, each would let both runs start all that their widths allow.
    const refused = place.provider.rejected().length - refusedBefore;
    expect(refused).toBeLessThan((DEATHS * 2 * WIDTH) / 2);
  });

  it("does not forget the rate of the provider's headers", { tags: ["slow"] }, async () => {
    const limiter = new OpenAiLimiter({ requestsPerMinute: 6_000, tokensPerMinute: 1e9, fill: 0.02 });
    const place = await startPlace(limiter);
    const looks = [await openBatch(place, 250), await openBatch(place, 250)];
    await expect.poll(() => place.provider.admitted().length).toBeGreaterThanOrEqual(130);
    const refusedBefore = place.provider.rejected().length;
    const epochs = await killGate(place, { between: 10, all: 500 });
    expect(epochs.size).toBe(DEATHS);
    await expectAllOnce(place, looks, 250);
    expect(place.provider.rejected().length - refusedBefore).toBeLessThan((DEATHS * 2 * WIDTH) / 2);
  });
});
