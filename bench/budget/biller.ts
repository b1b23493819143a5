/**
 * A chat completions endpoint that bills: it keeps its own account of what each call has cost, to be compared with the
 * gateway's. It is slow at random and, with `--faults`, fails in every way that providers do. An answer that was made
 * is billed whether or not it arrives; an error is not.
 *
 *   node bench/budget/biller.ts [--faults] [--latency-ms=60000]
 *
 * Prints its port. `GET /bill` returns the account.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { z } from "zod";
import { billNanoUsd, draw, usageOf, type Usage } from "./tariff.ts";
import { listenForParent } from "../servers/child-server.ts";

const { values } = parseArgs({
  options: { faults: { type: "boolean", default: false }, "latency-ms": { type: "string" } },
});

/** What one name has been billed. `unsure`: answers of which the gateway cannot have read the price. */
type Account = { nanoUsd: number; unsure: number; requests: number };

const accounts = new Map<string, Account>();
let inFlight = 0;
let billedAnswers = 0;

const chat = z.object({
  messages: z.array(z.object({ content: z.string() })).min(1),
  max_tokens: z.number().int().positive().optional(),
});

/** How often each fault strikes, of all requests. `slow` is an answer that takes a second, not a fault. */
const FAULTS: readonly (readonly [Ending, number])[] = [
  ["rate-limited", 0.05],
  ["error", 0.05],
  ["reset", 0.02],
  ["truncated", 0.02],
  ["hang", 0.02],
  ["no-usage", 0.02],
  ["slow", 0.05],
];
type Ending = "answer" | "slow" | "rate-limited" | "error" | "reset" | "truncated" | "hang" | "no-usage";
const UNSURE: readonly Ending[] = ["reset", "truncated", "hang", "no-usage"];

function endingOf(name: string, request: number): Ending {
  if (!values.faults) return "answer";
  let left = draw(name, request, "fault");
  for (const [ending, share] of FAULTS) {
    if (left < share) return ending;
    left -= share;
  }
  return "answer";
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await textOf(request);
  if (request.method === "GET") return reply(response, 200, { inFlight, billedAnswers, accounts: [...accounts] });
  const { messages, max_tokens: cap } = chat.parse(JSON.parse(text));
  const name = messages.at(-1)?.content.split(" ", 1)[0] ?? "";
  const account = accounts.get(name) ?? { nanoUsd: 0, unsure: 0, requests: 0 };
  accounts.set(name, account);
  account.requests += 1;
  const ending = endingOf(name, account.requests);
  inFlight += 1;
  response.once("close", () => (inFlight -= 1));
  if (ending === "rate-limited" || ending === "error") {
    await sleep(latencyOf(name, ending));
    if (response.destroyed) account.unsure += 1;
    return fail(response, ending);
  }
  const bytes = messages.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  const usage = usageOf(name, { bytes, messages: messages.length }, cap ?? null);
  account.nanoUsd += billNanoUsd(usage);
  billedAnswers += 1;
  if (UNSURE.includes(ending)) account.unsure += 1;
  // A client that leaves before its answer is billed for it nevertheless.
  else response.once("close", () => (account.unsure += response.writableFinished ? 0 : 1));
  await sleep(latencyOf(name, ending));
  answer(response, ending, usage);
}

function latencyOf(name: string, ending: Ending): number {
  if (values["latency-ms"] !== undefined) return Number(values["latency-ms"]);
  return ending === "slow" ? 1_000 : 10 + 90 * draw(name, "latency");
}

function fail(response: ServerResponse, ending: "rate-limited" | "error"): void {
  if (ending === "error") return reply(response, 500, { error: { message: "drawn by lot" } });
  response.setHeader("retry-after-ms", "50");
  reply(response, 429, { error: { message: "drawn by lot" } });
}

function answer(response: ServerResponse, ending: Ending, usage: Usage): void {
  if (ending === "hang") return;
  if (ending === "reset") return void response.destroy();
  const body = {
    model: "bench-small",
    choices: [{ index: 0, message: { role: "assistant", content: "An answer." }, finish_reason: "stop" }],
    ...(ending === "no-usage" ? {} : { usage: wireUsage(usage) }),
  };
  if (ending !== "truncated") return reply(response, 200, body);
  response.writeHead(200, { "content-type": "application/json" });
  response.write(JSON.stringify(body).slice(0, 40), () => response.destroy());
}

function wireUsage({ promptTokens, cachedTokens, completionTokens, costNanoUsd }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    ...(costNanoUsd === null ? {} : { cost: costNanoUsd / 1e9 }),
  };
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) if (chunk instanceof Uint8Array) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const server = createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
listenForParent(server);
