/** A message batch whose gateway is killed again and again: each request is sent, answered, counted and charged once. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { Gateway } from "../support/gateway.ts";
import { MESSAGE_USD, MessageBatchProvider, REFUSED_WORD } from "../support/message-batch-provider.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";

const KEY = "sk-ant-provider-61aa";
const REQUESTS = 600;
const WIDTH = 16;
/** Shares of the requests that have been sent when the gateway is killed. */
const KILLS = [0.01, 0.5, 1];

const batch = z.object({
  id: z.string(),
  processing_status: z.string(),
  request_counts: z.record(z.string(), z.number()),
});
const result = z.object({
  custom_id: z.string(),
  result: z.discriminatedUnion("type", [
    z.object({
      type: z.literal("succeeded"),
      message: z.object({ content: z.tuple([z.object({ text: z.string() })]) }),
    }),
    z.object({ type: z.literal("errored"), error: z.object({ error: z.object({ type: z.string() }) }) }),
  ]),
});
const figures = z.object({ spent: z.number(), reserved: z.number() });
const run = z.object({ budget: z.object({ usd: figures, calls: figures }) });

const promptOf = (at: number) => (at % 10 === 3 ? `${REFUSED_WORD} ${at}` : `prompt ${at}`);
const provider = new MessageBatchProvider(KEY);
let dataDir: string;
let gateway: Gateway;
let results: z.infer<typeof result>[];
let ended: z.infer<typeof batch>;
let budget: z.infer<typeof run>["budget"];

beforeAll(async () => {
  await provider.start();
  provider.behave({ liveMs: 20 });
  dataDir = await mkdtemp(join(tmpdir(), "fanout-disk-"));
  const prices = { "*": { input: MESSAGE_USD.live, output: MESSAGE_USD.live } };
  const up = { kind: "anthropic", base_url: provider.origin, api_key: KEY, models: ["*"], prices };
  const options = { dataDir, vars: { ADMIN_KEY: randomUUID(), UPSTREAMS: { up } } };
  gateway = await startR2Gateway(options);
  const { id: runId, token } = await gateway.openRun({ budget: { usd: 1 }, max_parallel: WIDTH });
  const get = async (path: string): Promise<Response> => await gateway.fetch(path, { token });
  const requests = Array.from({ length: REQUESTS }, (_, at) => ({
    custom_id: `r${at}`,
    params: { model: "claude-x", max_tokens: 20, messages: [{ role: "user", content: promptOf(at) }] },
  }));
  const json = { requests };
  const { id } = batch.parse(await (await gateway.fetch("/v1/messages/batches", { token, json })).json());
  for (const share of KILLS) {
    await vi.waitUntil(() => provider.live.length >= share * REQUESTS, { interval: 5, timeout: 120_000 });
    await gateway.kill();
    gateway = await startR2Gateway(options);
  }
  const path = `/v1/messages/batches/${id}`;
  const look = async () => {
    ended = batch.parse(await (await get(path)).json());
    return ended.processing_status;
  };
  await vi.waitUntil(async () => (await look()) === "ended", { timeout: 120_000, interval: 200 });
  const text = await (await get(`${path}/results`)).text();
  results = text
    .trimEnd()
    .split("\n")
    .map((line) => result.parse(JSON.parse(line)));
  ({ budget } = run.parse(await (await get(`/runs/${runId}`)).json()));
}, 400_000);
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe("a message batch of 600 requests whose gateway is killed three times", { tags: ["slow"] }, () => {
  it("has one result for each request, which is its own", () => {
    expect(ended.request_counts).toEqual({
      processing: 0,
      succeeded: REQUESTS * 0.9,
      errored: REQUESTS * 0.1,
      canceled: 0,
      expired: 0,
    });
    expect(results).toHaveLength(REQUESTS);
    const byId = new Map(results.map(({ custom_id: customId, result: one }) => [customId, one]));
    for (let at = 0; at < REQUESTS; at++) {
      const one = byId.get(`r${at}`);
      const shown = one?.type === "succeeded" ? one.message.content[0].text : one?.error.error.type;
      expect(shown).toBe(at % 10 === 3 ? "invalid_request_error" : promptOf(at));
    }
  });

  it("pays twice at most for what was in flight at a kill, and is charged no less than the bill", () => {
    expect(new Set(provider.live).size).toBe(REQUESTS);
    expect(provider.live.length).toBeLessThanOrEqual(REQUESTS + KILLS.length * WIDTH);
    expect([budget.usd.reserved, budget.calls.reserved]).toEqual([0, 0]);
    expect(budget.calls.spent).toBeGreaterThanOrEqual(REQUESTS);
    expect(budget.calls.spent).toBeLessThanOrEqual(REQUESTS + KILLS.length * WIDTH);
    expect(budget.usd.spent).toBeGreaterThanOrEqual(provider.billUsd() - 1e-9);
  });
});
