/**
 * Recursive language models that know nothing of the gateway: the requests that they send, in their order and form, and
 * every field that they read of the answers, with a router's too. fast-rlm uses OpenAI's client for JavaScript; the two others
 * use the one for Python, so their requests are sent here as that one sends them. `python` runs those two as whole programs.
 * fast-rlm itself cannot run without jsr.io and Pyodide's CDN, from which each of its agents loads packages when it starts.
 */
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { tokensIn } from "../support/provider-exchange.ts";
import { startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 }, max_parallel: 8 });
});
afterAll(() => clients.stop());

type Message = { role: string; content: string | null };
const system: Message = { role: "system", content: "Write code between ```repl fences." };
const user = (content: string): Message => ({ role: "user", content });

const details = z.looseObject({ cached_tokens: z.number().optional(), reasoning_tokens: z.number().optional() });
const usage = z.looseObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  cost: z.number(),
  prompt_tokens_details: details.optional(),
  completion_tokens_details: details.optional(),
  cost_details: z.looseObject({ upstream_inference_cost: z.number() }).optional(),
});
const message = z.looseObject({ role: z.literal("assistant"), content: z.string(), reasoning: z.string().optional() });
const completion = z.looseObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.looseObject({ index: z.int(), message, finish_reason: z.string() })),
  usage,
});
type Completion = z.infer<typeof completion>;

describe("fast-rlm", () => {
  const CODE = "```repl\nx = await llm_query(context)\n```";

  /** One step of an agent: its conversation goes along, as does what it wants of a router. */
  const step = async (model: string, messages: Message[]): Promise<Completion> => {
    const client = new OpenAI({ apiKey: run.token, baseURL: clients.baseUrl });
    const request = { model, messages: [system, ...messages], temperature: 0.1, reasoning: { effort: "low" } };
    return completion.parse(await client.post("/chat/completions", { body: request }));
  };

  /** A root agent that has three sub-agents work at once, and goes on with their answers and its own earlier words. */
  const recurse = async (model: string): Promise<Completion[]> => {
    const first = await step(model, [user(CODE)]);
    const children = await Promise.all(["one", "two", "three"].map((task) => step(model, [user(task)])));
    const said = first.choices[0]?.message;
    const results = children.map(({ choices }) => choices[0]?.message.content).join(",");
    const last = await step(model, [user(CODE), ...(said === undefined ? [] : [said]), user(`results: ${results}`)]);
    return [first, ...children, last];
  };

  it("reads code, reasoning, tokens and cost in every answer of a router", async () => {
    const answers = await recurse("router/routed");
    expect(answers.map(({ choices }) => choices[0]?.message.content)).toEqual([
      ...[CODE, "one", "two", "three"],
      "results: one,two,three",
    ]);
    for (const answer of answers) {
      expect(answer.choices[0]?.message.reasoning).toBe("I repeat it.");
      expect(answer.usage.prompt_tokens_details?.cached_tokens).toBe(1);
      expect(answer.usage.completion_tokens_details?.reasoning_tokens).toBe(1);
      expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens + answer.usage.completion_tokens);
    }
    // Its own words went back as they came.
    const last = clients.provider.asked("/chat/completions").at(-1);
    const sent = z.looseObject({ messages: z.array(z.looseObject({ reasoning: z.string().optional() })) });
    expect(sent.parse(last?.json).messages[2]?.reasoning).toBe("I repeat it.");
    expect(last?.json).toMatchObject({ reasoning: { effort: "low" }, temperature: 0.1 });
  });

  it.each(["router/routed", "up/echo"])("totals the costs of %s to what the run has spent", async (model) => {
    const answers = await recurse(model);
    const costNanoUsd = answers.reduce((sum, { usage: { cost } }) => sum + Math.round(cost * 1e9), 0);
    expect(costNanoUsd).toBeGreaterThan(0);
    expect(costNanoUsd).toBe(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBe(costNanoUsd);
  });

  it("gets a message that it matches when the budget is spent", async () => {
    run = await clients.openRun({ budget: { usd: 0.0003 }, max_parallel: 8 });
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, task) => step("up/echo", [user(`${task}`)])),
    );
    const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [String(answer.reason)] : []));
    expect(refused.length).toBeLessThan(20);
    for (const words of [...refused, String(await thrownBy(step("up/echo", [user("x".repeat(400))])))]) {
      expect(words).toMatch(/402 Budget exceeded: \$0\.000\d+ spent, limit is \$0\.0003/);
    }
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBeLessThanOrEqual(300_000);
  });
});

/** What OpenAI's client for Python sends beside the body. */
const PYTHON = {
  accept: "application/json",
  "accept-encoding": "gzip, deflate",
  "content-type": "application/json",
  "user-agent": "OpenAI/Python 2.8.0",
  "x-stainless-arch": "x64",
  "x-stainless-async": "false",
  "x-stainless-lang": "python",
  "x-stainless-os": "Linux",
  "x-stainless-package-version": "2.8.0",
  "x-stainless-raw-response": "true",
  "x-stainless-read-timeout": "600",
  "x-stainless-retry-count": "0",
  "x-stainless-runtime": "CPython",
  "x-stainless-runtime-version": "3.12.3",
};

async function post(body: object): Promise<{ answer: Completion; headers: Headers }> {
  const answer = await run.fetch("/v1/chat/completions", { json: body, headers: PYTHON });
  expect(answer.status).toBe(200);
  return { answer: completion.parse(await answer.json()), headers: answer.headers };
}

describe("rlm", () => {
  it("reads usage and cost of every call, root and batched sub-calls, by model", async () => {
    const root = await post({ messages: [system, user("root")], model: "router/routed" });
    // Its batches have four calls in flight.
    const prompts = Array.from({ length: 16 }, (_, index) => `chunk ${index}`);
    const texts: string[] = [];
    let costUsd = root.answer.usage.cost;
    for (let at = 0; at < prompts.length; at += 4) {
      const four = prompts.slice(at, at + 4).map((prompt) => post({ messages: [user(prompt)], model: "up/echo" }));
      for (const { answer } of await Promise.all(four)) {
        texts.push(answer.choices[0]?.message.content ?? "");
        costUsd += answer.usage.cost;
      }
    }
    expect(texts).toEqual(prompts);
    expect(root.answer.usage.cost_details?.upstream_inference_cost).toBe(0);
    expect(Math.round(costUsd * 1e9)).toBe(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("may request usage in the form of some routers", async () => {
    const { answer } = await post({ messages: [user("x")], model: "up/echo", usage: { include: true } });
    expect(answer.usage.completion_tokens).toBe(tokensIn("x"));
    expect(clients.provider.exchanges).toMatchObject([{ json: { usage: { include: true } } }]);
  });
});

describe("dspy.RLM through LiteLLM", () => {
  it("runs eight threads, and reads model, text, finish reason, tokens and limits in every answer", async () => {
    const send = (prompt: string) =>
      post({ messages: [user(prompt)], model: "up/echo", temperature: 1, max_tokens: 4_000, extra_headers: null });
    const prompts = Array.from({ length: 8 }, (_, index) => `[[ ## question ## ]]\n${index}`);
    const answers = await Promise.all(prompts.map(send));
    for (const [index, { answer, headers }] of answers.entries()) {
      expect(answer.model).toBe("echo");
      expect(answer.choices).toMatchObject([{ message: { content: prompts[index] }, finish_reason: "stop" }]);
      expect(answer.usage.completion_tokens).toBe(tokensIn(prompts[index] ?? ""));
      expect(headers.get("x-request-id")).toMatch(/^[A-Za-z0-9_-]{8,64}$/);
    }
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
    const { headers } = await post({ messages: [user("x")], model: "up/raw-limits" });
    expect(headers.get("x-ratelimit-remaining-tokens")).toBe("149984");
  });

  it("gets errors as LiteLLM classifies them: by status and by error.message", async () => {
    await run.fetch(`/runs/${run.id}/close`, { method: "POST" });
    const json = { model: "up/echo", messages: [user("x")] };
    const answer = await run.fetch("/v1/chat/completions", { json, headers: PYTHON });
    const read = z.object({ error: z.looseObject({ message: z.string(), type: z.string(), code: z.string() }) });
    const { error } = read.parse(await answer.json());
    expect([answer.status, error.code, error.type]).toEqual([401, "invalid_api_key", "authentication_error"]);
    expect(answer.headers.get("x-should-retry")).toBe("false");
  });
});
