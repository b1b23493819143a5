/** `service_tier: "flex"`: cheaper where it is sold and has room, at the standard tier elsewhere, charged by the answer's tier. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openedRunDocument } from "../../src/contract/runs.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startTieredProvider, TIER_USD, type TieredProvider } from "../support/tiered-provider.ts";
import { answerOf, documentOf, groupOf, type RunAccess } from "./world.ts";

const FLEX = { service_tier: "flex" };
const rates = (usd: number) => ({ input: usd, output: usd });

let provider: TieredProvider;
let gateway: Gateway;
let billedBefore = 0;

beforeAll(async () => {
  provider = await startTieredProvider();
  const base = {
    kind: "openai",
    base_url: provider.baseUrl,
    api_key: "sk-x",
    aggregate: "json",
    prompt_tokens_per_call: 0,
  };
  const tiered = { "*": { ...rates(TIER_USD.default), flex: rates(TIER_USD.flex) } };
  const UPSTREAMS = {
    up: { ...base, models: ["*"], prices: tiered, max_attempts: 1 },
    plain: { ...base, models: [], prices: { "*": rates(TIER_USD.default) } },
  };
  gateway = await startGateway({ vars: { UPSTREAMS, DEFAULT_MODEL: "up/m", ADMIN_KEY: randomUUID() } });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
beforeEach(() => {
  provider.requests.length = 0;
  billedBefore = provider.billUsd();
});

async function openRun(body: Record<string, unknown> = {}): Promise<RunAccess> {
  const { id, token } = await gateway.openRun({ budget: { usd: 1 }, ...body });
  return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
}

/** What a run has spent is what the provider has billed since the test began. */
async function expectBill(run: RunAccess): Promise<void> {
  const { usd } = (await documentOf(run)).budget;
  expect(usd).toMatchObject({ reserved: 0 });
  expect(usd.spent).toBeCloseTo(provider.billUsd() - billedBefore, 9);
}

const sent = () => provider.requests.map(({ tier, status }) => [tier, status]);

describe("a call with service_tier flex", () => {
  it("is sent as flex and costs half", async () => {
    const run = await openRun();
    const answer = await run.send("/query", { json: { prompt: "four token prompt", ...FLEX } });
    expect(answer.json).toMatchObject({ text: "four token prompt", attempts: 1, usage: { cost: 10e-6 } });
    expect(sent()).toEqual([["flex", 200]]);
    await expectBill(run);
  });

  it("is sent at the standard tier at once if flex has no room, though the upstream allows one attempt", async () => {
    const run = await openRun();
    const answer = await run.send("/query", { json: { prompt: "all is full now!", ...FLEX } });
    expect(answer.json).toMatchObject({ text: "all is full now!", usage: { cost: 16e-6 } });
    expect(sent()).toEqual([
      ["flex", 429],
      [null, 200],
    ]);
    await expectBill(run);
  });

  it("is sent at the standard tier if the model is not sold as flex", async () => {
    const run = await openRun();
    expect((await run.send("/query", { json: { prompt: "one", model: "up/unsold", ...FLEX } })).status).toBe(200);
    expect(sent()).toEqual([
      ["flex", 400],
      [null, 200],
    ]);
    await expectBill(run);
  });

  it("is charged at the standard tier if the answer names that", async () => {
    const run = await openRun();
    await run.send("/query", { json: { prompt: "one", model: "up/router", ...FLEX } });
    expect(sent()).toEqual([["flex", 200]]);
    await expectBill(run);
  });

  it("goes without a tier to an upstream that has no price for it", async () => {
    const run = await openRun();
    expect((await run.send("/query", { json: { prompt: "one", model: "plain/m", ...FLEX } })).status).toBe(200);
    expect(sent()).toEqual([[null, 200]]);
  });

  it("meets a rate limit of the key like any other call", async () => {
    const run = await openRun();
    const group = groupOf(await run.send("/batch", { json: { prompts: ["limit"], ...FLEX } }));
    expect(group.status).toBe("completed");
    expect(sent()).toEqual([
      ["flex", 429],
      ["flex", 200],
    ]);
    await expectBill(run);
  });

  it("is reserved at the standard tier: a budget that covers flex only starts nothing", async () => {
    const run = await openRun({ budget: { usd: 60e-6 } });
    const json = { prompt: "x".repeat(20), max_tokens: 16, ...FLEX };
    expect((await run.send("/query", { json })).status).toBe(402);
    expect(sent()).toEqual([]);
    const richer = await openRun({ budget: { usd: 120e-6 } });
    expect((await richer.send("/query", { json })).status).toBe(200);
  });
});

describe("service_tier of a batch", () => {
  it("is the default of its items, each of which falls back for itself; the bill is exact", async () => {
    const run = await openRun();
    const items = Array.from({ length: 40 }, (_, at) => ({ prompt: `${at % 4 === 0 ? "full" : "room"} ${at}` }));
    const json = { items: [...items, { prompt: "now", service_tier: "default" }], ...FLEX };
    const group = groupOf(await run.send("/batch", { json }));
    expect(group).toMatchObject({ status: "completed", counts: { completed: 41 } });
    const tiers = (tier: string | null, status: number) =>
      provider.requests.filter((each) => each.tier === tier && each.status === status).length;
    expect([tiers("flex", 200), tiers("flex", 429), tiers(null, 200)]).toEqual([30, 10, 11]);
    await expectBill(run);
  });

  it("works with a schema: repairs of a call that fell back are charged, too", async () => {
    const run = await openRun();
    const schema = { type: "object" };
    const json = { prompt: "full", schema, schema_retries: 1, ...FLEX };
    expect((await run.send("/query", { json })).status).toBe(502);
    await expectBill(run);
  });
});

describe("service_tier of a run", () => {
  it("is that of calls which name none, and a child's", async () => {
    const run = await openRun(FLEX);
    await run.send("/query", { json: { prompt: "one" } });
    await run.send("/query", { json: { prompt: "all full" } });
    await run.send("/query", { json: { prompt: "two", service_tier: "default" } });
    expect(groupOf(await run.send("/batch", { json: { prompts: ["three"] } })).status).toBe("completed");
    const child = openedRunDocument().parse((await run.send("/runs", { json: {} })).json);
    await run.send("/query", { token: child.token, json: { prompt: "four" } });
    const tiers = provider.requests.map(({ prompt, tier }) => [prompt, tier]);
    expect(tiers).toEqual([
      ["one", "flex"],
      ["all full", "flex"],
      ["all full", null],
      ["two", null],
      ["three", "flex"],
      ["four", "flex"],
    ]);
  });

  it("changes nothing in the requests of /v1, which say themselves what they want", async () => {
    const run = await openRun(FLEX);
    const json = { model: "up/m", messages: [{ role: "user", content: "one" }] };
    expect((await run.send("/v1/chat/completions", { json })).status).toBe(200);
    expect(sent()).toEqual([[null, 200]]);
  });

  it.each(["fast", "batch", "", 1])("is refused as %j", async (service_tier) => {
    const run = await openRun();
    expect((await run.send("/query", { json: { prompt: "one", service_tier } })).status).toBe(400);
  });
});
