/** `service_tier: "batch"` at an upstream of Anthropic's protocol: a group goes through Message Batches, once, at half the price. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { MESSAGE_USD, MessageBatchProvider, REFUSED_WORD } from "../support/message-batch-provider.ts";

const HOUR_MS = 3_600_000;
const KEY = "sk-ant-provider-90ce";
const WAIT = { timeout: 60_000, interval: 100 };
const provider = new MessageBatchProvider(KEY);
let dataDir = "";
let gateway: Gateway;
let start: () => Promise<Gateway>;

beforeAll(async () => {
  await provider.start();
  dataDir = await mkdtemp(join(tmpdir(), "fanout-message-tier-"));
  const rates = (usd: number) => ({ input: usd, output: usd });
  const base = {
    kind: "anthropic",
    base_url: provider.origin,
    api_key: KEY,
    models: ["*"],
    prompt_tokens_per_call: 0,
    prices: { "*": { ...rates(MESSAGE_USD.live), batch: rates(MESSAGE_USD.batch) } },
  };
  // Calls leave the batches of `soon` twelve seconds after they were opened: a busy machine has made them by then.
  const soon = { ...base, models: [], batch: { poll_ms: 100, margin_ms: HOUR_MS - 12_000 } };
  const UPSTREAMS = { up: { ...base, batch: { poll_ms: 100 } }, soon };
  const vars = { UPSTREAMS, DEFAULT_MODEL: "up/m", ADMIN_KEY: randomUUID() };
  start = () => startGateway({ dataDir, vars });
  gateway = await start();
});
afterEach(() => provider.reset());
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const group = z.looseObject({
  status: z.string(),
  results: z.array(z.string()).optional(),
  waiting_for: z.array(z.looseObject({})).optional(),
});
const figures = z.object({ spent: z.number(), reserved: z.number() });
const run = z.object({ budget: z.object({ usd: figures, calls: figures }) });

async function open(json: Record<string, unknown>) {
  const billedBefore = provider.billUsd();
  const { id, token } = await gateway.openRun({ budget: { usd: 1 } });
  const tier = { service_tier: "batch", deadline_ms: HOUR_MS, max_tokens: 20 };
  const headers = { prefer: "respond-async" };
  const opened = await gateway.fetch("/batch", { token, json: { ...tier, ...json }, headers });
  const place = opened.headers.get("location") ?? expect.fail("no group");
  const send = async (path: string): Promise<unknown> => await (await gateway.fetch(path, { token })).json();
  const look = async () => group.parse(await send(place));
  const ended = () =>
    vi.waitFor(async () => {
      const seen = await look();
      expect(seen.status).not.toBe("running");
      return seen;
    }, WAIT);
  const budget = async () => run.parse(await send(`/runs/${id}`)).budget;
  return { look, ended, budget, billed: () => provider.billUsd() - billedBefore };
}

const sizes = () => provider.batches.map(({ requests }) => requests.length);

describe("a batch of the tier `batch` at an upstream of Anthropic's protocol", () => {
  it("is one message batch, answered in the order of its prompts and charged at half the price", async () => {
    const opened = await open({ prompts: ["one", "two", "three"] });
    const { status, results } = await opened.ended();
    expect([status, results, sizes(), provider.live]).toEqual(["completed", ["one", "two", "three"], [3], []]);
    const { usd, calls } = await opened.budget();
    expect(usd.spent).toBeCloseTo(opened.billed(), 12);
    // One, one and two tokens, twice, at a dollar per million.
    expect(opened.billed()).toBeCloseTo(8e-6, 12);
    expect([usd.reserved, calls]).toEqual([0, { spent: 3, reserved: 0 }]);
    const ids = provider.batches[0]?.requests.map((request) => request.custom_id) ?? [];
    expect(ids.every((id) => /^[a-zA-Z0-9_-]{1,64}$/.test(id))).toBe(true);
  });

  it("fails a call that the provider refused, for nothing, and no other", async () => {
    const opened = await open({ prompts: ["one", REFUSED_WORD] });
    const { results = [] } = await opened.ended();
    expect(results[0]).toBe("one");
    expect(results[1]).toContain(REFUSED_WORD);
    expect((await opened.budget()).usd.spent).toBeCloseTo(2e-6, 12);
    expect([sizes(), provider.live]).toEqual([[2], []]);
  });

  it("sends live what expired in the batch, which costs nothing there", async () => {
    provider.behave({ worksOn: () => 1, expires: true });
    const opened = await open({ prompts: ["one", "two"] });
    expect((await opened.ended()).results).toEqual(["one", "two"]);
    expect([sizes(), provider.live]).toEqual([[2], ["two"]]);
    expect((await opened.budget()).usd.spent).toBeCloseTo(opened.billed(), 12);
  });

  it("cancels the batch in time for its deadline, and sends the rest live", { tags: ["slow"] }, async () => {
    provider.behave({ worksOn: () => 1 });
    const opened = await open({ prompts: ["one", "two"], model: "soon/m" });
    expect((await opened.ended()).results).toEqual(["one", "two"]);
    expect([provider.batches[0]?.counts.canceled, provider.live]).toEqual([1, ["two"]]);
    expect((await opened.budget()).usd.spent).toBeCloseTo(opened.billed(), 12);
  });

  it("is sent live if the provider refuses the batch", async () => {
    provider.behave({ refusesBatches: 403 });
    const opened = await open({ prompts: ["one", "two"] });
    expect((await opened.ended()).results).toEqual(["one", "two"]);
    expect([sizes(), provider.live.toSorted()]).toEqual([[], ["one", "two"]]);
  });

  it(
    "is made once if the reply to its creation is lost, beside another batch of as many requests",
    { tags: ["slow"] },
    async () => {
      provider.behave({ worksOn: () => 0 });
      const other = await open({ prompts: ["a", "b"] });
      await expect.poll(sizes, WAIT).toEqual([2]);
      provider.behave({ losesCreation: true });
      const opened = await open({ prompts: ["one", "two"] });
      expect((await opened.ended()).results).toEqual(["one", "two"]);
      expect((await other.ended()).results).toEqual(["a", "b"]);
      expect([sizes(), provider.live]).toEqual([[2, 2], []]);
      expect((await opened.budget()).usd.reserved).toBe(0);
    },
  );

  it("survives SIGKILLs, and pays for nothing twice", { tags: ["slow"] }, async () => {
    provider.behave({ worksOn: () => 0 });
    const prompts = Array.from({ length: 50 }, (_, at) => `prompt ${at}`);
    const opened = await open({ prompts });
    for (const _ of [1, 2, 3]) {
      await gateway.kill();
      gateway = await start();
    }
    await expect.poll(sizes, WAIT).toEqual([50]);
    await gateway.kill();
    provider.behave();
    gateway = await start();
    expect((await opened.ended()).results).toEqual(prompts);
    expect([sizes(), provider.live]).toEqual([[50], []]);
    expect((await opened.budget()).usd.spent).toBeCloseTo(opened.billed(), 12);
  });
});
