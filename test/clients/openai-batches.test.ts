/** OpenAI's own client with a batch that goes through its provider's Batch API: asked for by a field that its types do not name, and by metadata. */
import OpenAI, { toFile } from "openai";
import { VERSION } from "openai/version";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BATCH_USD, BatchProvider } from "../support/batch-provider.ts";
import type { Gateway } from "../support/gateway.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";

const provider = new BatchProvider();
let gateway: Gateway;

beforeAll(async () => {
  await provider.start();
  const rates = (usd: number) => ({ input: usd, output: usd });
  const up = {
    kind: "openai",
    base_url: provider.baseUrl,
    models: ["*"],
    prices: { "*": { ...rates(BATCH_USD.live), batch: rates(BATCH_USD.batch) } },
    batch: { poll_ms: 100 },
  };
  gateway = await startR2Gateway({ vars: { UPSTREAMS: { up } } });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

it.each([
  ["a field", { service_tier: "batch" }],
  ["metadata", { metadata: { fanout_service_tier: "batch" } }],
])("creates it with %s, waits for it, and reads its answers", async (_, asked) => {
  expect(VERSION.split(".")[0]).toBe(process.env["OPENAI_MAJOR"]);
  provider.batches.length = 0;
  const { token } = await gateway.openRun({ budget: { usd: 1 } });
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: token });
  const url = "/v1/chat/completions" as const;
  const lines = ["one", "two"].map((content) =>
    JSON.stringify({
      custom_id: content,
      method: "POST",
      url,
      body: { model: "gpt-x", max_tokens: 9, messages: [{ role: "user", content }] },
    }),
  );
  const file = await toFile(Buffer.from(lines.join("\n")), "in.jsonl");
  const { id: input_file_id } = await openai.files.create({ file, purpose: "batch" });
  const wanted = { input_file_id, endpoint: url, completion_window: "24h" as const, ...asked };
  const { id } = await openai.batches.create(wanted);
  await expect.poll(async () => (await openai.batches.retrieve(id)).status, { timeout: 30_000 }).toBe("completed");
  const batch = await openai.batches.retrieve(id);
  expect(batch).toMatchObject({ request_counts: { total: 2, completed: 2, failed: 0 }, error_file_id: null });
  // Two lines of two tokens, each for a dollar per million less.
  expect(batch).toMatchObject({ service_tier: "batch", provider_batch: { completed: 2, saved_usd: 4e-6 } });
  const text = await (await openai.files.content(batch.output_file_id ?? "")).text();
  expect(text.match(/"content":"(one|two)"/g)).toHaveLength(2);
  expect([provider.batches.map(({ lines: sent }) => sent.length), provider.live]).toEqual([[2], []]);
});
