/** `service_tier: "batch"`: a group goes through its provider's own Batch API, at half price, and its deadline holds all the same. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { BATCH_USD, BatchProvider } from "../support/batch-provider.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf, documentOf, type Answer, type RunAccess } from "./world.ts";

const HOUR_MS = 3_600_000;
const BATCH = { service_tier: "batch", deadline_ms: HOUR_MS };
const PROVIDER_KEY = "sk-provider-of-batches";
/** For conditions that hold within a second or two: the looks at a batch are 100 ms apart here. */
const WAIT = { timeout: 60_000, interval: 100 };

const provider = new BatchProvider();
const ADMIN_KEY = randomUUID();
let dataDir = "";
let gateway: Gateway;
let billedBefore = 0;

function start(): Promise<Gateway> {
  // Calls leave the batches of `soon` twelve seconds after they were opened: a busy machine has made them by then.
  const UPSTREAMS = provider.upstreams(HOUR_MS - 12_000);
  return startGateway({ dataDir, vars: { UPSTREAMS, PROVIDER_KEY, DEFAULT_MODEL: "up/m", ADMIN_KEY } });
}

beforeAll(async () => {
  await provider.start();
  dataDir = await mkdtemp(join(tmpdir(), "fanout-batch-tier-"));
  gateway = await start();
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await rm(dataDir, { recursive: true, force: true });
});
afterEach(() => provider.reset());

async function openRun(usd = 1): Promise<RunAccess> {
  billedBefore = provider.billUsd();
  const { id, token } = await gateway.openRun({ budget: { usd } });
  return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
}

const groupDocument = z.looseObject({
  status: z.string(),
  results: z.array(z.unknown()).optional(),
  counts: z.record(z.string(), z.number()),
  waiting_for: z.array(z.record(z.string(), z.unknown())).optional(),
});

async function open(run: RunAccess, json: Record<string, unknown>): Promise<string> {
  const answer = await run.send("/batch", { json: { ...BATCH, ...json }, headers: { prefer: "respond-async" } });
  expect(answer.status).toBe(202);
  return z.string().parse(answer.headers.get("location"));
}

const look = async (run: RunAccess, place: string) => groupDocument.parse((await run.send(place)).json);

async function ended(run: RunAccess, place: string) {
  const whole = await vi.waitFor(async () => {
    const group = await look(run, place);
    expect(group.status).not.toBe("running");
    return group;
  }, WAIT);
  return whole;
}

/** What the run has spent is what the provider has billed since it was opened, and nothing is reserved. */
async function expectBill(run: RunAccess): Promise<number> {
  const billed = provider.billUsd() - billedBefore;
  const { usd } = (await documentOf(run)).budget;
  expect(usd).toMatchObject({ reserved: 0 });
  expect(usd.spent).toBeCloseTo(billed, 9);
  return billed;
}

const prompts = (count: number) =>
  Array.from({ length: count }, (_, at) => `prompt number ${String(at).padStart(3, "0")}`);
/** A prompt of these has 17 characters: five tokens each way, of both. */
const TOKENS = 10;
const usdOf = (calls: number, rate: number) => (calls * TOKENS * rate) / 1e6;

describe("a group with service_tier batch", () => {
  it("goes through one batch of its provider, costs half, and has its answers in input order", async () => {
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: prompts(40) }));
    expect(group).toMatchObject({ status: "completed", results: prompts(40), counts: { completed: 40 } });
    expect(provider.live).toEqual([]);
    expect(provider.batches.map(({ lines }) => lines.length)).toEqual([40]);
    expect(provider.batches[0]?.lines[0]?.body).not.toHaveProperty("service_tier");
    expect(await expectBill(run)).toBeCloseTo(usdOf(40, BATCH_USD.batch), 9);
    const { saved_usd: savedUsd } = z.looseObject({ saved_usd: z.number() }).parse(group["usage"]);
    expect(savedUsd).toBeCloseTo(usdOf(40, BATCH_USD.live - BATCH_USD.batch), 9);
  });

  it("has the whole message of an answer that has more than text, and of one whose call includes it", async () => {
    const run = await openRun();
    const items = [
      { prompt: "prompt of thought" },
      { prompt: "prompt with no t.", include: ["message"] },
      { prompt: "prompt of no more" },
    ];
    const group = await ended(run, await open(run, { items }));
    const plain = (content: string) => ({ role: "assistant", content });
    expect(group["items"]).toMatchObject([
      { message: { ...plain("prompt of thought"), reasoning_content: "about prompt of thought" } },
      { message: plain("prompt with no t.") },
      { status: "completed" },
    ]);
    expect(z.array(z.looseObject({})).parse(group["items"])[2]).not.toHaveProperty("message");
    expect(provider.batches.map(({ lines }) => lines.length)).toEqual([3]);
  });

  it("has a batch of its own for each model, and sends calls live whose upstream sells none", async () => {
    const run = await openRun();
    const items = [
      { prompt: "prompt of model a", model: "up/a" },
      { prompt: "prompt of model b", model: "up/b" },
      { prompt: "prompt of no tier", service_tier: "default" },
      { prompt: "prompt not sold..", model: "plain/m" },
    ];
    const group = await ended(run, await open(run, { items }));
    expect(group.results).toEqual(items.map(({ prompt }) => prompt));
    expect(provider.batches.map(({ lines }) => lines.map(({ body }) => body.model))).toEqual([["a"], ["b"]]);
    expect(provider.live.toSorted()).toEqual(["prompt not sold..", "prompt of no tier"]);
    await expectBill(run);
  });

  it("is polled as its upstream says, though the first call of the group goes to another upstream", async () => {
    const run = await openRun();
    const items = ["plain/m", "up/a"].map((model) => ({ prompt: `prompt for ${model}`, model }));
    const group = await ended(run, await open(run, { items }));
    expect(group.results).toEqual(items.map(({ prompt }) => prompt));
    expect(provider.batches).toHaveLength(1);
  });

  it("fails the calls that the provider refuses, and no other", async () => {
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: ["this is good text", "it is refused now"] }));
    expect(group).toMatchObject({ status: "partial", counts: { completed: 1, failed: 1 } });
    expect(provider.live).toEqual([]);
    await expectBill(run);
  });

  it("asks live again for an answer that does not fit its schema", async () => {
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: ["this is no object"], schema: { type: "object" } }));
    expect(group.status).toBe("failed");
    expect(provider.live.length).toBeGreaterThan(0);
    await expectBill(run);
  });

  it("says that its calls wait there, with their reservations at the standard tier", async () => {
    provider.behave({ worksOn: () => 0 });
    const run = await openRun();
    const place = await open(run, { prompts: prompts(3), max_tokens: 5 });
    await vi.waitFor(() => expect(provider.batches).toHaveLength(1), WAIT);
    await vi.waitFor(async () => {
      const { waiting_for: waits, counts } = await look(run, place);
      expect(waits).toEqual([{ provider_batch: "up", slots: 3 }]);
      expect(counts).toMatchObject({ queued: 3, running: 0 });
    }, WAIT);
    const { usd } = (await documentOf(run)).budget;
    expect(usd.reserved).toBeGreaterThanOrEqual(3 * 5 * BATCH_USD.live * 1e-6);
    // Other calls of the run do not wait for it.
    expect((await run.send("/query", { json: { prompt: "in the meantime.." } })).status).toBe(200);
    expect((await run.send(place, { method: "DELETE" })).status).toBe(200);
    await ended(run, place);
  });

  it("is cancelled there by DELETE; what the provider has answered by then is paid, and an answer", async () => {
    provider.behave({ worksOn: (lines) => lines - 2 });
    const run = await openRun();
    const place = await open(run, { prompts: prompts(10) });
    await vi.waitFor(() => expect(provider.batches[0]?.status).toBe("in_progress"), WAIT);
    expect((await run.send(place, { method: "DELETE" })).status).toBe(200);
    const group = await ended(run, place);
    expect(provider.batches.map(({ status }) => status)).toEqual(["cancelled"]);
    expect(group.counts).toMatchObject({ completed: 8, cancelled: 2 });
    expect(provider.live).toEqual([]);
    await expectBill(run);
  });

  it("is cancelled there in time for its deadline, and what is open is sent live", { tags: ["slow"] }, async () => {
    provider.behave({ worksOn: (lines) => lines - 4 });
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: prompts(10), model: "soon/m" }));
    expect(group).toMatchObject({ status: "completed", results: prompts(10) });
    expect(provider.batches.map(({ status }) => status)).toEqual(["cancelled"]);
    expect(provider.live.toSorted()).toEqual(prompts(10).slice(6));
    const expected = usdOf(6, BATCH_USD.batch) + usdOf(4, BATCH_USD.live);
    expect(await expectBill(run)).toBeCloseTo(expected, 9);
  });

  it("sends live what the provider let expire", async () => {
    provider.behave({ worksOn: () => 1, expires: true });
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: prompts(3) }));
    expect(group).toMatchObject({ status: "completed", results: prompts(3) });
    expect(provider.live.toSorted()).toEqual(prompts(3).slice(1));
    await expectBill(run);
  });

  it("is sent live at once if the provider takes no files", async () => {
    provider.behave({ refusesFiles: { status: 404 } });
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: prompts(3) }));
    expect(group).toMatchObject({ status: "completed", results: prompts(3) });
    expect([provider.batches.length, provider.live.length]).toEqual([0, 3]);
    await expectBill(run);
  });

  it("makes no second batch if the reply to the creation is lost", { tags: ["slow"] }, async () => {
    provider.behave({ losesCreation: true });
    const run = await openRun();
    const group = await ended(run, await open(run, { prompts: prompts(3) }));
    expect(group).toMatchObject({ status: "completed", results: prompts(3) });
    expect([provider.batches.length, provider.live.length]).toEqual([1, 0]);
    await expectBill(run);
  });

  it("survives a kill of the gateway while its calls are at the provider", { tags: ["slow"] }, async () => {
    provider.behave({ worksOn: () => 0 });
    const run = await openRun();
    const place = await open(run, { prompts: prompts(5) });
    await vi.waitFor(() => expect(provider.batches[0]?.looks).toBeGreaterThan(1), WAIT);
    const reserved = (await documentOf(run)).budget.usd.reserved;
    await gateway.kill();
    gateway = await start();
    expect((await documentOf(run)).budget.usd.reserved).toBe(reserved);
    provider.behave();
    const group = await ended(run, place);
    expect(group).toMatchObject({ status: "completed", results: prompts(5) });
    expect([provider.batches.length, provider.live.length]).toEqual([1, 0]);
    await expectBill(run);
    await gateway.kill();
    gateway = await start();
    expect(await look(run, place)).toMatchObject({ usage: { saved_usd: usdOf(5, BATCH_USD.live - BATCH_USD.batch) } });
  });
});

describe("service_tier batch is refused", () => {
  const refusal = async (path: string, json: unknown, prefer = "respond-async"): Promise<Answer> =>
    (await openRun()).send(path, { json, headers: { prefer } });

  it.each([
    ["deadline_ms", { prompts: ["one"], service_tier: "batch" }],
    ["deadline_ms", { prompts: ["one"], service_tier: "batch", deadline_ms: HOUR_MS - 1 }],
    ["dedupe", { prompts: ["one"], ...BATCH, dedupe: true }],
    ["tiers", { prompts: ["one"], ...BATCH, tiers: "strict" }],
  ])("with a message about %s", async (field, json) => {
    const { status, text } = await refusal("/batch", json);
    expect(status).toBe(400);
    expect(text).toContain(field);
  });

  const item = { prompt: "one", service_tier: "batch" };
  it.each([
    ["an item", "/batch", { items: [{ prompt: "two" }, item], deadline_ms: HOUR_MS }, "items[1].service_tier"],
    ["a single call", "/query", item, "service_tier"],
    ["a task", "/dag", { tasks: [{ id: "a", ...item }] }, "tasks[0].service_tier"],
  ])("on %s, with the way to send it", async (_, path, json, param) => {
    const { status, text } = await refusal(path, json);
    expect([status, text]).toEqual([400, expect.stringContaining(param)]);
    expect(text).toContain("top level of POST /batch");
  });

  it("for a client that waits", async () => {
    const { status, text } = await refusal("/batch", { prompts: ["one"], ...BATCH }, "wait=1");
    expect(status).toBe(400);
    expect(text).toContain("respond-async");
  });

  it("on /query, which is one call", async () => {
    expect((await refusal("/query", { prompt: "one", ...BATCH })).status).toBe(400);
  });
});
