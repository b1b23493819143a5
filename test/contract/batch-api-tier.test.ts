/**
 * `service_tier: "batch"` on `/v1/batches`: its lines go through their provider's own Batch API, at half price, and its object, its
 * files and its window are those of any batch.
 */
import type { Batch } from "openai/resources/batches";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { BATCH_USD, BatchProvider } from "../support/batch-provider.ts";
import {
  chatLine,
  createBatch,
  endOf,
  resultsOf,
  startBatchPlace,
  uploadLines,
  type BatchPlace,
  type BatchRun,
} from "./batch-place.ts";
import { documentOf, errorOf } from "./world.ts";

const DAY_MS = 86_400_000;
const WAIT = { timeout: 60_000, interval: 100 };
const TIER = { service_tier: "batch" };

const provider = new BatchProvider();
let place: BatchPlace;
let billedBefore = 0;

beforeAll(async () => {
  await provider.start();
  // Lines leave the batches of `soon` fifteen seconds after they are fed: a busy machine has made them by then.
  const UPSTREAMS = provider.upstreams(DAY_MS - 15_000);
  place = await startBatchPlace(undefined, { vars: { UPSTREAMS } });
});
afterAll(async () => {
  await place.stop();
  await provider.stop();
});
afterEach(() => provider.reset());

async function openRun(usd = 100): Promise<BatchRun> {
  billedBefore = provider.billUsd();
  return place.openRun({ budget: { usd } });
}

/** A prompt of 17 characters: five tokens each way. */
const promptOf = (at: number) => `prompt number ${String(at).padStart(3, "0")}`;
const TOKENS = 10;
const usdOf = (calls: number, rate: number) => (calls * TOKENS * rate) / 1e6;
const linesOf = (count: number, model = "up/m") =>
  Array.from({ length: count }, (_, at) => chatLine(`c${at}`, promptOf(at), model));

const shown = z.looseObject({
  service_tier: z.string(),
  provider_batch: z.strictObject({ completed: z.int(), saved_usd: z.number() }),
});
const shownOf = (batch: Batch) => shown.parse(batch);

/** What the run has spent is what the provider has billed since it was opened, and nothing is reserved. */
async function expectBill(run: BatchRun): Promise<number> {
  const billed = provider.billUsd() - billedBefore;
  const { usd } = (await documentOf(run)).budget;
  expect(usd).toMatchObject({ reserved: 0 });
  expect(usd.spent).toBeCloseTo(billed, 9);
  return billed;
}

/** A batch that has ended and all of whose lines have their answers. */
async function expectWhole(run: BatchRun, created: Batch, count: number): Promise<Batch> {
  const batch = await endOf(run, created);
  expect(batch).toMatchObject({ status: "completed", request_counts: { total: count, completed: count, failed: 0 } });
  const { output, error } = await resultsOf(run, batch);
  expect([output.size, error.size]).toEqual([count, 0]);
  for (let at = 0; at < count; at++) {
    expect(output.get(`c${at}`)?.response?.body).toMatchObject({ choices: [{ message: { content: promptOf(at) } }] });
  }
  return batch;
}

const sizes = () => provider.batches.map(({ lines }) => lines.length);

describe("a batch with service_tier batch", () => {
  it(
    "goes through one batch of its provider, costs half, and says so in its object and in its lines",
    { tags: ["slow"] },
    async () => {
      const run = await openRun();
      const created = await createBatch(run, linesOf(300), TIER);
      expect(created).toMatchObject({ status: "validating", ...TIER, provider_batch: { completed: 0, saved_usd: 0 } });
      const batch = await expectWhole(run, created, 300);
      expect([sizes(), provider.live]).toEqual([[300], []]);
      expect(provider.batches[0]?.lines[0]).toMatchObject({ url: "/v1/chat/completions", body: { model: "m" } });
      expect(provider.batches[0]?.lines[0]?.body).not.toHaveProperty("service_tier");
      const { completed, saved_usd: savedUsd } = shownOf(batch).provider_batch;
      expect(completed).toBe(300);
      expect(savedUsd).toBeCloseTo(usdOf(300, BATCH_USD.live - BATCH_USD.batch), 9);
      expect(await expectBill(run)).toBeCloseTo(usdOf(300, BATCH_USD.batch), 9);
      const { output } = await resultsOf(run, batch);
      const cost = usdOf(1, BATCH_USD.batch);
      expect(output.get("c7")?.response?.body).toMatchObject({ service_tier: "default", usage: { cost } });
      expect(batch.usage).toMatchObject({ input_tokens: 1_500, output_tokens: 1_500 });
    },
  );

  it("is asked for by metadata too, for clients that can send no other field", async () => {
    const run = await openRun();
    const metadata = { fanout_service_tier: "batch", mine: "kept" };
    const batch = await expectWhole(run, await createBatch(run, linesOf(3), { metadata }), 3);
    expect(batch).toMatchObject({ metadata, ...TIER });
    expect([sizes(), provider.live]).toEqual([[3], []]);
    await expectBill(run);
  });

  it("sends those lines live that cannot go there, in the same batch", async () => {
    const run = await openRun();
    const named = chatLine("c2", promptOf(2), "up/a");
    const lines = [
      chatLine("c0", promptOf(0), "up/a"),
      chatLine("c1", promptOf(1), "plain/m"),
      { ...named, body: { ...(named["body"] as object), service_tier: "default" } },
      chatLine("c3", promptOf(3), "up/b"),
    ];
    const batch = await expectWhole(run, await createBatch(run, lines, TIER), 4);
    expect(provider.batches.map(({ lines: sent }) => sent.map(({ body }) => body.model))).toEqual([["a"], ["b"]]);
    expect(provider.live.toSorted()).toEqual([promptOf(1), promptOf(2)]);
    expect(shownOf(batch).provider_batch.completed).toBe(2);
    await expectBill(run);
  });

  it("takes embeddings there, too", async () => {
    const run = await openRun();
    const url = "/v1/embeddings" as const;
    const lines = ["one", "two"].map((input) => ({
      custom_id: input,
      method: "POST",
      url,
      body: { model: "m", input },
    }));
    const batch = await endOf(run, await createBatch(run, lines, { ...TIER, endpoint: url }));
    const { output } = await resultsOf(run, batch);
    expect(output.get("two")?.response?.body).toMatchObject({ data: [{ embedding: [1, 0.5] }] });
    expect([sizes(), provider.live, provider.batches[0]?.lines[0]?.url]).toEqual([[2], [], url]);
    await expectBill(run);
  });

  it("is sent live at once if the provider has no batches for its endpoint, or takes no files", async () => {
    for (const behaviour of [{ offers: [] }, { refusesFiles: { status: 404 } }]) {
      provider.behave(behaviour);
      const run = await openRun();
      const batch = await expectWhole(run, await createBatch(run, linesOf(3), TIER), 3);
      expect(shownOf(batch).provider_batch).toEqual({ completed: 0, saved_usd: 0 });
      expect(await expectBill(run)).toBeCloseTo(usdOf(3, BATCH_USD.live), 9);
    }
    expect([sizes(), provider.live.length]).toEqual([[], 6]);
  });

  it("has the provider's own words about a line that it refuses in the error file", async () => {
    const run = await openRun();
    const lines = [...linesOf(2), chatLine("bad", "it is refused now", "up/m")];
    const batch = await endOf(run, await createBatch(run, lines, TIER));
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 3, completed: 2, failed: 1 } });
    const { error } = await resultsOf(run, batch);
    expect(error.get("bad")?.response).toMatchObject({ status_code: 400, body: { error: { message: "refused" } } });
    expect(provider.live).toEqual([]);
    await expectBill(run);
  });

  it(
    "keeps its window: what the provider lets expire, or has not done in time, is sent live",
    { tags: ["slow"] },
    async () => {
      provider.behave({ worksOn: () => 1, expires: true });
      const expired = await openRun();
      const first = await expectWhole(expired, await createBatch(expired, linesOf(3), TIER), 3);
      expect([shownOf(first).provider_batch.completed, provider.live.toSorted()]).toEqual([
        1,
        [promptOf(1), promptOf(2)],
      ]);
      await expectBill(expired);
      provider.live.length = 0;
      provider.behave({ worksOn: (lines) => lines - 4 });
      const late = await openRun();
      const second = await expectWhole(late, await createBatch(late, linesOf(10, "soon/m"), TIER), 10);
      expect(provider.batches.map(({ status }) => status)).toEqual(["expired", "cancelled"]);
      expect([shownOf(second).provider_batch.completed, provider.live.length]).toEqual([6, 4]);
      const bill = usdOf(6, BATCH_USD.batch) + usdOf(4, BATCH_USD.live);
      expect(await expectBill(late)).toBeCloseTo(bill, 9);
    },
  );

  it("is cancelled there, too; what the provider has answered by then is paid, and in the output file", async () => {
    provider.behave({ worksOn: (lines) => lines - 2 });
    const run = await openRun();
    const created = await createBatch(run, linesOf(10), TIER);
    await vi.waitFor(() => expect(provider.batches[0]?.status).toBe("in_progress"), WAIT);
    const waiting = await run.openai.batches.retrieve(created.id);
    expect(waiting).toMatchObject({ status: "in_progress", request_counts: { total: 10, completed: 0, failed: 0 } });
    expect((await run.openai.batches.cancel(created.id)).status).toBe("cancelling");
    const batch = await endOf(run, created);
    expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: 10, completed: 8, failed: 0 } });
    const { output, error } = await resultsOf(run, batch);
    expect([output.size, error.get("c9")?.error?.code]).toEqual([8, "batch_cancelled"]);
    expect([provider.batches.map(({ status }) => status), provider.live]).toEqual([["cancelled"], []]);
    await expectBill(run);
  });

  it(
    "reserves the standard price of its lines, and sends those that the budget does not cover when it does",
    { tags: ["slow"] },
    async () => {
      provider.behave({ worksOn: () => 0 });
      const lines = linesOf(20).map((line) => ({ ...line, body: { ...(line["body"] as object), max_tokens: 5 } }));
      const run = await openRun(0.001);
      const created = await createBatch(run, lines, TIER);
      await vi.waitFor(() => expect(provider.batches[0]?.status).toBe("in_progress"), WAIT);
      const { usd } = (await documentOf(run)).budget;
      const claimed = sizes()[0] ?? 0;
      expect(claimed).toBeLessThan(20);
      // The completion alone costs so much at the standard price.
      expect(usd.reserved).toBeGreaterThanOrEqual(claimed * 5 * BATCH_USD.live * 1e-6);
      expect(usd.reserved).toBeLessThanOrEqual(0.001);
      provider.behave();
      await expectWhole(run, created, 20);
      expect(sizes().reduce((sum, size) => sum + size, 0)).toBe(20);
      expect(await expectBill(run)).toBeCloseTo(usdOf(20, BATCH_USD.batch), 9);
    },
  );
});

describe("a batch with service_tier batch is submitted once", () => {
  it("if the reply to its creation at the provider is lost", { tags: ["slow"] }, async () => {
    provider.behave({ losesCreation: true });
    const run = await openRun();
    await expectWhole(run, await createBatch(run, linesOf(3), TIER), 3);
    expect([sizes(), provider.live]).toEqual([[3], []]);
    await expectBill(run);
  });

  it(
    "if the gateway is killed while its lines are fed, and while they are at the provider",
    { tags: ["slow"] },
    async () => {
      provider.behave({ worksOn: () => 0 });
      const run = await openRun();
      const created = await createBatch(run, linesOf(2_500), TIER);
      await place.restart();
      await vi.waitFor(() => expect(sizes()).toEqual([2_000, 500]), WAIT);
      await vi.waitFor(() => expect(provider.batches[1]?.looks).toBeGreaterThan(1), WAIT);
      await place.restart();
      provider.behave();
      const batch = await endOf(run, created);
      expect(batch).toMatchObject({
        status: "completed",
        request_counts: { total: 2_500, completed: 2_500, failed: 0 },
      });
      const { output } = await resultsOf(run, batch);
      expect(output.size).toBe(2_500);
      expect([sizes(), provider.live]).toEqual([[2_000, 500], []]);
      expect(shownOf(batch).provider_batch.completed).toBe(2_500);
      await expectBill(run);
    },
  );
});

describe("service_tier of a batch", () => {
  it("is refused in OpenAI's words if it is no tier that batches have", async () => {
    const run = await openRun();
    const input_file_id = await uploadLines(run, linesOf(1));
    const base = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const refusal = async (json: object) => errorOf(await run.send("/v1/batches", { json: { ...base, ...json } }));
    expect(await refusal({ service_tier: "flex" })).toMatchObject({ param: "service_tier", code: "invalid_value" });
    expect(await refusal({ metadata: { fanout_service_tier: "cheap" } })).toMatchObject({
      param: "metadata.fanout_service_tier",
      message: expect.stringContaining("'batch' and 'default'"),
    });
  });

  it("leaves the object of any other batch as OpenAI's", async () => {
    const run = await openRun();
    const batch = await expectWhole(run, await createBatch(run, linesOf(2), { service_tier: "default" }), 2);
    expect(Object.keys(batch).filter((name) => /tier|provider/.test(name))).toEqual([]);
    expect([sizes(), provider.live.length]).toEqual([[], 2]);
  });
});
