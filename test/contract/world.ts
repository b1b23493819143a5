/**
 * Shared by the tests of the contract: a gateway, a provider behind it that counts its requests, and `send`, which reads
 * every reply to its end and fails if it contains the provider's key.
 */
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import { failureForm } from "../support/failure-form.ts";
import { startGateway, type Gateway, type GatewayOptions, type GatewayRequest } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamAnswer, type UpstreamCall } from "../support/upstream.ts";

/** The provider's key: only the provider may receive it. */
export const PROVIDER_KEY = "sk-provider-5f0c9d1e7ab24c60";

export type Answer = { status: number; headers: Headers; text: string; json: unknown };

export type RunAccess = {
  id: string;
  token: string;
  send: (path: string, request?: GatewayRequest) => Promise<Answer>;
};

export type World = {
  gateway: Gateway;
  upstream: TestUpstream;
  /** Sends a request with the credential in `request.token`, or without one. */
  send: (path: string, request?: GatewayRequest) => Promise<Answer>;
  /** Sends a request as the operator. */
  sendAsOperator: (path: string, request?: GatewayRequest) => Promise<Answer>;
  openRun: (body?: Record<string, unknown>) => Promise<RunAccess>;
  /**
   * A model of the counting provider at a key that no other test uses: for tests whose provider limits the key or refuses it,
   * which makes the calls of all runs wait.
   */
  modelAside: () => string;
  stop: () => Promise<void>;
};

const ASIDE = Array.from({ length: 24 }, (_, at) => `aside-${at}`);

/**
 * Starts a gateway with three upstreams: `sim` (simulated), `up` (the counting provider; a call costs $1 per million
 * prompt tokens and $2 per million completion tokens) and `free` (the same provider without a price); and `up` under further names, for
 * `modelAside`. `more`: upstreams beside these.
 */
export async function startWorld(
  handler?: (call: UpstreamCall) => UpstreamAnswer,
  vars: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<World> {
  const upstream = await startUpstream(handler);
  const provider = { kind: "openai", base_url: upstream.baseUrl, api_key: "secret:PROVIDER_KEY" };
  const UPSTREAMS = {
    sim: { kind: "simulated", prices: { "*": { input: 1, output: 2 } } },
    up: { ...provider, models: ["up-*"], prices: { "*": { input: 1, output: 2 } } },
    free: { ...provider, models: ["free-*"] },
    ...Object.fromEntries(
      ASIDE.map((name) => [name, { ...provider, models: [], prices: { "*": { input: 1, output: 2 } } }]),
    ),
    ...more,
  };
  const left = [...ASIDE];
  const gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY, ...vars } });
  const send = async (path: string, request?: GatewayRequest) => answerOf(await gateway.fetch(path, request));
  return {
    gateway,
    upstream,
    send,
    sendAsOperator: (path, request) => send(path, { token: gateway.adminKey, ...request }),
    openRun: async (body) => {
      const { id, token } = await gateway.openRun(body);
      return { id, token, send: (path, request) => send(path, { token, ...request }) };
    },
    modelAside: () => {
      const name = left.pop();
      if (name === undefined) throw new Error("every key aside is taken: add one");
      return `${name}/up-1`;
    },
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

/** A gateway of one test's own, which ends with it, whatever becomes of the test. */
export async function startOwnGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.stop());
  return gateway;
}

/** Reads an answer to its end. `json` is undefined if the text is not JSON. */
export async function answerOf(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  expect(text).not.toContain(PROVIDER_KEY);
  for (const [, value] of headers) expect(value).not.toContain(PROVIDER_KEY);
  return { status, headers, text, json: jsonOf(text) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error in an answer, which has the form that every error has. */
export function errorOf(answer: Answer): z.infer<typeof failureForm>["error"] {
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  return failureForm.parse(answer.json).error;
}

const usage = z.strictObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  cost: z.number(),
  cached_tokens: z.int().optional(),
  reasoning_tokens: z.int().optional(),
});

const reply = z.looseObject({
  id: z.string(),
  text: z.string(),
  result: z.string(),
  response: z.string(),
  model: z.string(),
  usage,
  attempts: z.int(),
  latency_ms: z.number(),
  queued_ms: z.number(),
  parallel_group_id: z.string().nullable(),
  finish_reason: z.string().nullable(),
});

/** The answer to a `/query` that succeeded. */
export function replyOf(answer: Answer): z.infer<typeof reply> {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return reply.parse(answer.json);
}

const group = z.looseObject({
  id: z.string().nullable(),
  object: z.literal("group"),
  status: z.string(),
  results: z.array(z.unknown()),
  responses: z.array(z.unknown()),
  errors: z.array(z.looseObject({ code: z.string(), message: z.string(), attempts: z.int() }).nullable()),
  items: z.array(
    z.looseObject({
      index: z.int(),
      id: z.string().nullable(),
      status: z.string(),
      usage: usage.nullable(),
      attempts: z.int(),
    }),
  ),
  usage,
  metrics: z.looseObject({ wall_ms: z.number(), sequential_ms: z.number(), peak_parallel: z.int() }),
  effective_parallel: z.int(),
});

/** The answer to a `/batch`, whose four lists are all as long as it was. */
export function groupOf(answer: Answer): z.infer<typeof group> {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  const parsed = group.parse(answer.json);
  const { results, responses, errors, items } = parsed;
  expect(responses).toEqual(results);
  expect([errors.length, items.length]).toEqual([results.length, results.length]);
  expect(items.map(({ index }) => index)).toEqual(results.map((_, index) => index));
  return parsed;
}

const line = z.strictObject({
  limit: z.number().nullable(),
  spent: z.number(),
  reserved: z.number(),
  remaining: z.number().nullable(),
});

const run = z.looseObject({
  id: z.string(),
  object: z.literal("run"),
  status: z.string(),
  budget: z.strictObject({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line, new_tokens: line }),
  stats: z.looseObject({ total_queries: z.int(), pending_queries: z.int() }),
  metrics: z.looseObject({ attempts: z.int(), retries: z.int() }),
});

export type RunDocument = z.infer<typeof run>;

/** The document of a run, as the run itself returns it. */
export async function documentOf(access: RunAccess): Promise<RunDocument> {
  return run.parse((await access.send("/run")).json);
}
