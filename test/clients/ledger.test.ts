/** The run's account against the provider's own bill, over all endpoints and clients at once. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { all, costReader, startClients, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1, calls: 1_000 }, max_parallel: 16 });
  openai = new OpenAI({ baseURL: clients.baseUrl, apiKey: run.token, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: clients.gateway.url, apiKey: run.token, maxRetries: 0 });
});
afterAll(() => clients.stop());

const costOf = (usage: object | null | undefined): number => {
  if (usage == null || !("cost" in usage) || typeof usage.cost !== "number") return expect.fail("no cost is named");
  return Math.round(usage.cost * 1e9);
};
const messages = (content: string) => [{ role: "user" as const, content }];
const chatStream = (model: string, content: string, client = openai) =>
  client.chat.completions.create({
    ...{ model, messages: messages(content), stream: true },
    stream_options: { include_usage: true },
  });

/** The cost behind a stream that is read to its end with a client of its own. */
async function costBehind(read: (reader: Pick<typeof globalThis, "fetch">) => Promise<unknown>): Promise<number> {
  const { fetch, costNanoUsd } = costReader();
  await read({ fetch });
  return await costNanoUsd();
}

/** Calls that succeed, each with the cost that its client read, in nano-USD. */
const CALLS: ((text: string) => Promise<number>)[] = [
  async (text) => costOf((await openai.chat.completions.create({ model: "up/echo", messages: messages(text) })).usage),
  (text) => costBehind(async (own) => all(await chatStream("up/echo", text, openai.withOptions(own)))),
  async (text) => costOf((await all(await chatStream("edited/echo", text))).at(-1)?.usage),
  async (text) =>
    costOf((await openai.chat.completions.create({ model: "router/routed", messages: messages(text) })).usage),
  (text) => costBehind(async (own) => all(await chatStream("router/routed", text, openai.withOptions(own)))),
  async (text) => costOf((await openai.completions.create({ model: "up/echo", prompt: text, max_tokens: 99 })).usage),
  async (text) => costOf((await openai.embeddings.create({ model: "up/floats", input: [text, text] })).usage),
  async (text) => costOf((await openai.responses.create({ model: "up/echo", input: text })).usage),
  (text) => {
    const request = { model: "up/echo", input: text, stream: true } as const;
    return costBehind(async (own) => all(await openai.withOptions(own).responses.create(request)));
  },
  async (text) => {
    const request = { model: "claude-x", max_tokens: 99, messages: messages(text) };
    return costOf((await anthropic.messages.create(request)).usage);
  },
  (text) => {
    const request = { model: "claude-x", max_tokens: 99, messages: messages(text), stream: true } as const;
    return costBehind(async (own) => all(await anthropic.withOptions(own).messages.create(request)));
  },
];

/** Calls that fail after the provider may have begun to bill. */
const BROKEN: (() => Promise<unknown>)[] = [
  async () => all(await chatStream("up/cut-short", "cut in the middle of it")),
  async () => all(await chatStream("edited/cut-short", "cut in the middle of it")),
  async () => all(await chatStream("up/raw-error", "x")),
  async () => all(await chatStream("up/raw-reset", "x")),
  async () => all(await openai.responses.create({ model: "up/raw-eof", input: "x", stream: true })),
  async () => openai.chat.completions.create({ model: "once/raw-half", messages: messages("x") }),
];

/** Calls that fail before anything is billed. */
const FREE: (() => Promise<unknown>)[] = [
  () => openai.chat.completions.create({ model: "up/picky", messages: messages("x") }),
  () => openai.chat.completions.create({ model: "raw-401/raw-401", messages: messages("x") }),
  () => openai.chat.completions.create({ model: "up/limited", messages: messages("x") }),
  () => openai.chat.completions.create({ model: "once/busy", messages: messages("x") }),
];

it("the ledger charges exactly what the provider bills and each client reads, whatever calls run concurrently", async () => {
  const costs = await Promise.all(
    CALLS.flatMap((call, kind) =>
      Array.from({ length: 8 }, (_, index) => call(`call ${kind}.${index} ${"x".repeat(index * 9)}`)),
    ),
  );
  const told = costs.reduce((sum, cost) => sum + cost, 0);
  expect(told).toBe(clients.provider.billedNanoUsd());
  expect(await run.spentNanoUsd()).toBe(told);
  const { calls } = await run.budget();
  expect(calls).toEqual({ limit: 1_000, spent: costs.length, reserved: 0 });
  const attempts = await run.attempts(costs.length);
  expect(attempts.every(({ outcome, estimated }) => outcome === "success" && estimated === false)).toBe(true);
});

it("the ledger marks exactly the calls of unknown outcome as estimates, and never charges less than the bill", async () => {
  const exact = Promise.all(CALLS.map((call) => call("whole")));
  const broken = await Promise.allSettled([...BROKEN, ...FREE].map((call) => call()));
  const told = (await exact).reduce((sum, cost) => sum + cost, 0);
  expect(broken.map(({ status }) => status)).toEqual(broken.map(() => "rejected"));
  const spent = await run.spentNanoUsd();
  expect(spent).toBeGreaterThan(told);
  expect(spent).toBeGreaterThanOrEqual(clients.provider.billedNanoUsd());
  const attempts = await run.attempts(CALLS.length + BROKEN.length + FREE.length);
  expect(attempts.filter(({ estimated }) => estimated)).toHaveLength(BROKEN.length);
  expect((await run.budget()).calls.spent).toBe(CALLS.length + BROKEN.length + FREE.length);
});

it("the ledger charges a call and no money if the provider answers and bills nothing", async () => {
  await Promise.allSettled(FREE.map((call) => call()));
  await run.attempts(FREE.length);
  expect([await run.spentNanoUsd(), clients.provider.billedNanoUsd()]).toEqual([0, 0]);
  expect((await run.budget()).calls.spent).toBe(FREE.length);
});
