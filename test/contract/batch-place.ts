/** What the tests of files and batches share: a gateway with R2, a provider that counts, and OpenAI's own client. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import type { Batch, BatchCreateParams } from "openai/resources/batches";
import { expect, vi } from "vitest";
import { z } from "zod";
import { startR2Gateway } from "../support/r2-gateway.ts";
import type { Gateway, GatewayOptions, GatewayRequest } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamAnswer, type UpstreamCall } from "../support/upstream.ts";
import { answerOf, PROVIDER_KEY, type Answer, type RunAccess } from "./world.ts";

/** `output`: the end of what its gateway has printed. */
export type BatchRun = RunAccess & { openai: OpenAI; output: () => string };

export type BatchPlace = {
  /** The gateway that runs now. */
  gateway: () => Gateway;
  upstream: TestUpstream;
  openRun: (body?: Record<string, unknown>) => Promise<BatchRun>;
  /** Sends a request as the operator. */
  sendAsOperator: (path: string, request?: GatewayRequest) => Promise<Answer>;
  /** SIGKILL, and a start on the same disk. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
};

/** $1 per million prompt tokens, $2 per million completion tokens. */
export const PRICES = { "*": { input: 1, output: 2 } };

/** Starts a gateway with two upstreams: `sim` (simulated) and `up` (the counting provider, for chat only). */
export async function startBatchPlace(
  handler?: (call: UpstreamCall) => UpstreamAnswer,
  options: GatewayOptions = {},
): Promise<BatchPlace> {
  const upstream = await startUpstream(handler);
  const up = {
    kind: "openai",
    base_url: upstream.baseUrl,
    api_key: "secret:PROVIDER_KEY",
    models: ["up-*"],
    prices: PRICES,
  };
  const UPSTREAMS = { sim: { kind: "simulated", prices: PRICES }, up };
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-disk-"));
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS, PROVIDER_KEY, ...options.vars };
  const start = () => startR2Gateway({ ...options, dataDir, vars });
  let gateway = await start();
  const send = async (path: string, request?: GatewayRequest) => answerOf(await gateway.fetch(path, request));
  return {
    gateway: () => gateway,
    upstream,
    openRun: async (body) => {
      const { id, token } = await gateway.openRun(body);
      // The address changes when the gateway is started again.
      const fetchNow: typeof fetch = (input, init) => {
        const { pathname, search } = new URL(String(input));
        return fetch(`${gateway.url}${pathname}${search}`, init);
      };
      const openai = new OpenAI({ apiKey: token, baseURL: "http://gateway/v1", fetch: fetchNow, maxRetries: 0 });
      const output = (): string => gateway.output();
      return { id, token, openai, output, send: (path, request) => send(path, { token, ...request }) };
    },
    sendAsOperator: (path, request) => send(path, { token: gateway.adminKey, ...request }),
    restart: async () => {
      await gateway.kill();
      gateway = await start();
    },
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A batch line for a chat completion. */
export function chatLine(customId: string, prompt: string, model = "sim/echo"): Record<string, unknown> {
  const body = { model, messages: [{ role: "user", content: prompt }] };
  return { custom_id: customId, method: "POST", url: "/v1/chat/completions", body };
}

/** Lines as the text of a file; strings are written unchanged. */
export function jsonl(lines: readonly unknown[]): string {
  return lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
}

/** Uploads lines as the input of a batch. Its id. */
export async function uploadLines({ openai }: BatchRun, lines: readonly unknown[]): Promise<string> {
  const file = await toFile(Buffer.from(jsonl(lines)), "input.jsonl");
  return (await openai.files.create({ file, purpose: "batch" })).id;
}

type Rest = Partial<Omit<BatchCreateParams, "input_file_id" | "completion_window">> & {
  strict?: boolean;
  service_tier?: string;
};

/** Uploads lines and creates a batch of them. */
export async function createBatch(run: BatchRun, lines: readonly unknown[], rest: Rest = {}): Promise<Batch> {
  const input_file_id = await uploadLines(run, lines);
  return await run.openai.batches.create({
    endpoint: "/v1/chat/completions",
    ...rest,
    input_file_id,
    completion_window: "24h",
  });
}

const FINAL = new Set(["completed", "failed", "expired", "cancelled"]);

/** Waits until the batch has ended. If it does not in time, the error says how far it is, and what its gateway has printed. */
export async function endOf(run: BatchRun, { id }: { id: string }, withinMs = 110_000): Promise<Batch> {
  let last: Batch | null = null;
  const ended = vi.waitUntil(
    async () => {
      last = await run.openai.batches.retrieve(id);
      return FINAL.has(last.status) ? last : null;
    },
    { interval: 50, timeout: withinMs },
  );
  return await ended.catch((cause: unknown) => {
    throw new Error(`the batch has not ended: ${JSON.stringify(last)}; its gateway: ${run.output()}`, { cause });
  });
}

/** Uploads lines, runs them and waits for their end. */
export async function runBatch(run: BatchRun, lines: readonly unknown[], rest: Rest = {}): Promise<Batch> {
  return await endOf(run, await createBatch(run, lines, rest));
}

const resultLine = z.strictObject({
  id: z.string().regex(/^batch_req_/),
  custom_id: z.string(),
  response: z
    .strictObject({ status_code: z.int(), request_id: z.string().min(1), body: z.record(z.string(), z.unknown()) })
    .nullable(),
  error: z.strictObject({ code: z.string(), message: z.string().min(1) }).nullable(),
});
export type ResultLine = z.infer<typeof resultLine>;

/** The lines of a file that a batch wrote, each of which has the form that it must have. */
export async function linesOf({ openai }: BatchRun, fileId: string | null | undefined): Promise<ResultLine[]> {
  if (fileId == null) return [];
  const text = await (await openai.files.content(fileId)).text();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => resultLine.parse(JSON.parse(line)));
}

/** What a batch left: its output lines and its error lines by `custom_id`, each of which occurs once. */
export async function resultsOf(run: BatchRun, batch: Batch): Promise<{ output: Results; error: Results }> {
  const [output, error] = await Promise.all([linesOf(run, batch.output_file_id), linesOf(run, batch.error_file_id)]);
  const ids = [...output, ...error].map(({ custom_id }) => custom_id);
  expect(new Set(ids).size).toBe(ids.length);
  // Clients read `response` of every line of an output file.
  for (const { response, error: none } of output) expect([response?.status_code, none]).toEqual([200, null]);
  return { output: byId(output), error: byId(error) };
}

export type Results = Map<string, ResultLine>;

function byId(lines: readonly ResultLine[]): Results {
  return new Map(lines.map((line) => [line.custom_id, line]));
}

const completion = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })).length(1),
  usage: z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int() }),
});

/** What a chat completion in a line of an output file says, and what it used. */
export function completionOf(line: ResultLine | undefined): { text: string; prompt: number; completion: number } {
  const { choices, usage } = completion.parse(line?.response?.body);
  return {
    text: choices[0]?.message.content ?? "",
    prompt: usage.prompt_tokens,
    completion: usage.completion_tokens,
  };
}
