/** The kind `workers-ai`: workerd's own binding, and behind it a service that answers as Cloudflare documents. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { AiService } from "../support/ai-binding.ts";
import { startGateway, type Gateway, type OpenedRun } from "../support/gateway.ts";
import { budgetOf, logOf } from "./v1-world.ts";

const PAGE = new URL("../../docs/providers.md", import.meta.url);
const OLDER = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";
const SMALL = "@cf/meta/llama-3.1-8b-instruct-fp8-fast";
const OPENAI_FORM = "@cf/openai/gpt-oss-120b";
const EMBEDDER = "@cf/baai/bge-base-en-v1.5";
const SILENT_EMBEDDER = "@cf/baai/bge-m3";

const answered = z.looseObject({
  text: z.string(),
  finish_reason: z.string().nullable(),
  attempts: z.int(),
  value: z.unknown().optional(),
});
const failure = z.object({ error: z.looseObject({ message: z.string(), code: z.string() }) });
const completion = z.looseObject({
  choices: z.array(
    z.looseObject({
      finish_reason: z.string(),
      message: z.looseObject({
        content: z.string().nullable(),
        tool_calls: z
          .array(z.looseObject({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))
          .optional(),
      }),
    }),
  ),
  usage: z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int() }),
});
const vectors = z.object({ data: z.array(z.looseObject({ index: z.int(), embedding: z.unknown() })) });

const service = new AiService();
let stopService: () => Promise<void>;
let gateway: Gateway;

/** The block of the page, which is all that such a gateway needs. */
async function blockOf(): Promise<Record<string, unknown>> {
  const section = (await readFile(PAGE, "utf8")).split("\n## Workers AI, without a key\n")[1]?.split("\n## ")[0] ?? "";
  const code = /```json UPSTREAMS\n(.*?)```/s.exec(section)?.[1] ?? "{}";
  return z.record(z.string(), z.unknown()).parse(JSON.parse(code));
}

beforeAll(async () => {
  stopService = await service.start();
  const UPSTREAMS = {
    ...(await blockOf()),
    streamed: { kind: "workers-ai", aggregate: "stream", max_attempts: 1, models: [] },
    routed: { kind: "workers-ai", gateway: "my-gateway", models: [] },
    once: { kind: "workers-ai", max_attempts: 1, models: [], prices: { "@cf/none/*": { input: 1, output: 1 } } },
  };
  gateway = await startGateway({ ai: service.address, vars: { UPSTREAMS, DEFAULT_MODEL: OLDER } });
});
afterAll(async () => {
  await gateway.stop();
  await stopService();
});

async function ask(run: OpenedRun, path: string, json: unknown): Promise<{ status: number; text: string }> {
  const answer = await gateway.fetch(path, { token: run.token, json });
  return { status: answer.status, text: await answer.text() };
}

async function queried(run: OpenedRun, json: Record<string, unknown>): Promise<z.infer<typeof answered>> {
  const { status, text } = await ask(run, "/query", json);
  expect(status, text).toBe(200);
  return answered.parse(JSON.parse(text));
}

/** The nano-USD that the service has billed while `work` was done, and what the run was charged. */
async function billOf(run: OpenedRun, work: () => Promise<unknown>): Promise<{ billed: number; spent: number }> {
  const before = service.nanoUsd;
  const had = (await budgetOf(gateway, run.token)).usd.spent;
  await work();
  await expect.poll(async () => (await budgetOf(gateway, run.token)).usd.reserved).toBe(0);
  const { usd } = await budgetOf(gateway, run.token);
  return { billed: service.nanoUsd - before, spent: Math.round((usd.spent - had) * 1e9) };
}

it.each([OLDER, OPENAI_FORM, `streamed/${OLDER}`, `streamed/${OPENAI_FORM}`])(
  "answers /query with %s, and charges what is billed",
  async (model) => {
    const run = await gateway.openRun({ budget: { usd: 1 } });
    const bill = await billOf(run, async () => {
      expect(await queried(run, { model, prompt: "one two three" })).toMatchObject({
        text: "three two one",
        finish_reason: "stop",
      });
    });
    expect(bill.billed).toBeGreaterThan(0);
    expect(bill.spent).toBe(bill.billed);
    expect(service.ran.at(-1)?.inputs.stream ?? false).toBe(model.startsWith("streamed/"));
  },
);

it("answers the default model without a key, and all calls of a batch", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const prompts = Array.from({ length: 20 }, (_, at) => `word${at} tail`);
  const bill = await billOf(run, async () => {
    const { status, text } = await ask(run, "/batch", { prompts });
    expect(status, text).toBe(200);
    for (const at of prompts.keys()) expect(text).toContain(`"tail word${at}"`);
  });
  expect(bill.spent).toBe(bill.billed);
});

it("says that an answer was cut by its cap, which the older form does not", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  for (const model of [OLDER, `streamed/${OLDER}`]) {
    const answer = await queried(run, { model, prompt: "one two three", max_tokens: 2 });
    expect(answer).toMatchObject({ text: "three two", finish_reason: "length" });
  }
});

it("sends a schema as JSON mode takes it, and reads the value that comes", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const schema = { type: "object", properties: { words: { type: "integer" } }, required: ["words"] };
  const answer = await queried(run, { prompt: "one two", schema });
  expect(JSON.parse(answer.text)).toEqual({ words: 2 });
  expect(service.ran.at(-1)?.inputs.response_format).toMatchObject({
    type: "json_schema",
    json_schema: { type: "object", required: ["words"] },
  });
});

it("answers a chat of /v1 in OpenAI's form, with calls of tools", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const messages = [
    { role: "user", content: "one" },
    { role: "assistant", content: null, tool_calls: [] },
    { role: "user", content: "red green" },
  ];
  const bill = await billOf(run, async () => {
    const { status, text } = await ask(run, "/v1/chat/completions", { model: OLDER, messages, tools, max_tokens: 50 });
    expect(status, text).toBe(200);
    const [choice] = completion.parse(JSON.parse(text)).choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    const [called] = choice?.message.tool_calls ?? [];
    expect(called?.function).toEqual({ name: "look", arguments: '{"word":"green"}' });
    expect(called?.id).toMatch(/^call_/);
  });
  expect(bill.spent).toBe(bill.billed);
  expect(service.ran.at(-1)?.inputs.messages?.map(({ content }) => content)).toEqual(["one", "", "red green"]);
});

it.each([OLDER, OPENAI_FORM])("streams %s in OpenAI's form, and shows the usage to who asks for it", async (model) => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const body = { model, messages: [{ role: "user", content: "one two three" }], stream: true, max_tokens: 50 };
  for (const include_usage of [true, false]) {
    const bill = await billOf(run, async () => {
      const { text } = await ask(run, "/v1/chat/completions", { ...body, stream_options: { include_usage } });
      const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => json);
      expect(data.at(-1)).toBe("[DONE]");
      const chunk = z.looseObject({
        object: z.literal("chat.completion.chunk"),
        choices: z.array(
          z.looseObject({
            delta: z.looseObject({ content: z.string().optional() }),
            finish_reason: z.string().nullable(),
          }),
        ),
        usage: z.looseObject({ completion_tokens: z.int() }).nullish(),
      });
      const chunks = data.slice(0, -1).map((json) => chunk.parse(JSON.parse(json)));
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("three two one");
      expect(chunks.flatMap(({ choices }) => choices.map((each) => each.finish_reason)).at(-1)).toBe("stop");
      const usages = chunks.flatMap(({ usage }) =>
        usage === undefined || usage === null ? [] : [usage.completion_tokens],
      );
      expect(usages).toEqual(include_usage ? [3] : []);
    });
    expect(bill.spent).toBe(bill.billed);
  }
});

it("streams calls of tools with their places", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const body = { model: OLDER, messages: [{ role: "user", content: "red" }], tools, stream: true, max_tokens: 50 };
  const { text } = await ask(run, "/v1/chat/completions", body);
  expect(text).toContain('"function":{"name":"look","arguments":"{\\"word\\":\\"red\\"}"},"index":0');
  expect(text).toContain('"finish_reason":"tool_calls"');
});

it("makes no whole answer of a stream that breaks off", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const { status, text } = await ask(run, "/query", {
    model: `streamed/${OLDER}`,
    prompt: "all broken",
  });
  expect(status).toBe(502);
  expect(failure.parse(JSON.parse(text)).error.code).toBe("upstream_truncated");
});

it("embeds texts, as numbers and as the floats that OpenAI's clients ask for", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const embedded = async (fields: object) => {
    const { status, text } = await ask(run, "/v1/embeddings", { model: EMBEDDER, ...fields });
    expect(status, text).toBe(200);
    return vectors.parse(JSON.parse(text)).data;
  };
  expect(await embedded({ input: ["a", "bcd"] })).toMatchObject([
    { index: 0, embedding: [1, 0.5] },
    { index: 1, embedding: [3, 0.5] },
  ]);
  // 3 and 0.5 as IEEE 754 floats: 40400000 and 3f000000, the lowest byte first.
  const floats = Buffer.from("000040400000003f", "hex").toString("base64");
  expect(await embedded({ input: "abc", encoding_format: "base64" })).toMatchObject([{ index: 0, embedding: floats }]);
  for (const [fields, words] of [
    [{ input: [1, 2] }, "no tokens"],
    [{ input: "a", dimensions: 1 }, "does not shorten"],
  ] as const) {
    const { status, text } = await ask(run, "/v1/embeddings", { model: EMBEDDER, ...fields });
    expect(status).toBe(400);
    expect(text).toContain(words);
  }
});

it("charges embeddings the tokens that their answer states, and their reservation if it states none", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const embed = async (model: string) => {
    const { status, text } = await ask(run, "/v1/embeddings", { model, input: ["one two three", "four"] });
    expect(status, text).toBe(200);
  };
  const stated = await billOf(run, () => embed(EMBEDDER));
  // 4 words and 4 marks, at 6,058 neurons a million: 533.104 nano-USD.
  expect(stated).toEqual({ billed: 534, spent: 534 });
  const silent = await billOf(run, () => embed(SILENT_EMBEDDER));
  expect(silent.billed).toBeGreaterThan(0);
  expect(silent.spent).toBeGreaterThan(silent.billed);
});

it("adds up to the bill in neurons, over 200 calls of four kinds", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const neurons = service.neurons;
  const { billed, spent } = await billOf(run, async () => {
    for (const model of [OLDER, OPENAI_FORM, SMALL]) {
      const prompts = Array.from({ length: 50 }, (_, at) => "word ".repeat(1 + (at % 9)) + at);
      const { status, text } = await ask(run, "/batch", { prompts, model });
      expect(status, text).toBe(200);
    }
    await Promise.all(
      Array.from({ length: 50 }, (_, at) => ask(run, "/v1/embeddings", { model: EMBEDDER, input: `text ${at}` })),
    );
  });
  expect(spent).toBe(billed);
  const used = service.neurons - neurons;
  expect(used).toBeGreaterThan(1);
  // Each call is rounded up to a nano-USD.
  expect(spent - used * 11_000).toBeGreaterThanOrEqual(0);
  expect(spent - used * 11_000).toBeLessThan(200);
});

it("retries what found no capacity, and a rate that was exceeded, without a charge", { tags: ["slow"] }, async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  for (const why of ["capacity", "rate"]) {
    const bill = await billOf(run, async () => {
      const answer = await queried(run, { model: SMALL, prompt: `please ${why}` });
      expect(answer).toMatchObject({ text: `${why} please`, attempts: 2 });
    });
    expect(bill.spent).toBe(bill.billed);
  }
});

it("fails with Cloudflare's words and number, without a charge", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const cases = [
    { call: { prompt: "this is long" }, words: "exceeded this model context window limit (128)" },
    { call: { model: "once/@cf/none/such", prompt: "hello" }, words: "5007: No such model" },
    { call: { model: `once/${SMALL}`, prompt: "always capacity" }, words: "3040: Capacity temporarily exceeded" },
    {
      call: { model: `once/${SMALL}`, prompt: "always allocation" },
      words: "used up your daily free allocation",
    },
  ];
  for (const { call, words } of cases) {
    const { status, text } = await ask(run, "/query", { model: SMALL, ...call });
    expect(status, text).not.toBe(200);
    expect(failure.parse(JSON.parse(text)).error.message).toContain(words);
  }
  expect((await budgetOf(gateway, run.token)).usd).toMatchObject({ spent: 0, reserved: 0 });
  // No room for a model is no limit of the key: it counts as an overload.
  const ends = (await logOf(gateway, run)).map((line) => JSON.stringify(line)).filter((line) => line.includes("3040"));
  expect(ends.length).toBeGreaterThan(0);
  for (const line of ends) expect(line).not.toContain("rate_limited");
});

it("goes through an AI Gateway that is named", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  await queried(run, { model: `routed/${OLDER}`, prompt: "one" });
  expect(service.ran.at(-1)).toMatchObject({ path: "/ai-gateway/run", options: { gateway: { id: "my-gateway" } } });
  await queried(run, { model: OLDER, prompt: "one" });
  expect(service.ran.at(-1)?.path).toBe("/run");
});

it("refuses what the binding has not, and names where it is", async () => {
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const { status, text } = await ask(run, "/v1/responses", { model: OLDER, input: "hello", max_output_tokens: 9 });
  expect(status).toBe(400);
  expect(text).toContain("has chats and embeddings only");
});

it("says what is missing where a Worker has no such binding", { tags: ["slow"] }, async () => {
  const bare = await startGateway({ vars: { UPSTREAMS: await blockOf(), DEFAULT_MODEL: OLDER } });
  try {
    const run = await bare.openRun({ budget: { usd: 1 } });
    for (const [path, json] of [
      ["/query", { prompt: "hello" }],
      ["/v1/chat/completions", { model: OLDER, messages: [{ role: "user", content: "hello" }], max_tokens: 9 }],
    ] as const) {
      const answer = await bare.fetch(path, { token: run.token, json });
      expect(answer.status).toBe(500);
      expect(failure.parse(await answer.json()).error).toMatchObject({ code: "misconfigured" });
    }
    expect((await budgetOf(bare, run.token)).usd).toMatchObject({ spent: 0, reserved: 0 });
  } finally {
    await bare.stop();
  }
});
