/** What the clients' tests share: a gateway, the provider behind it, and runs whose token is the clients' key. */
import { expect } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway, type GatewayRequest } from "../support/gateway.ts";
import { startProvider, type Provider } from "../support/provider.ts";

/** The provider's key: only the provider may receive it. */
export const PROVIDER_KEY = "sk-provider-5f0c9d1e7ab24c60";
const WRONG_KEY = "sk-forgotten-aa11bb22cc33dd44";

const line = z.object({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() });
const budget = z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line });
const attempt = z.looseObject({
  event_type: z.string(),
  estimated: z.boolean().optional(),
  outcome: z.string().optional(),
});
export type LogLine = z.infer<typeof attempt>;

export type ClientRun = {
  id: string;
  token: string;
  fetch(path: string, request?: GatewayRequest): Promise<Response>;
  budget(): Promise<z.infer<typeof budget>>;
  /** What the run has spent, once nothing is reserved any more. */
  spentNanoUsd(): Promise<number>;
  /** The attempts that ended, oldest first, once there are so many. */
  attempts(count: number): Promise<LogLine[]>;
  /** How many calls the budget has refused so far. */
  refusals(): Promise<number>;
};

export type Clients = {
  gateway: Gateway;
  provider: Provider;
  /** `OPENAI_BASE_URL`. */
  baseUrl: string;
  openRun(body?: Record<string, unknown>): Promise<ClientRun>;
  stop(): Promise<void>;
};

/**
 * Starts a gateway with upstreams of one provider: `up` (whose prices are configured), `router` (which names its costs),
 * `claude` (Anthropic's protocol), `edited` (`up`, but the cost of a stream is added to its usage), `once` (`up` without retries), `impatient` (with a short time limit), `sim` (the embedded upstream), `broke`, `raw-401`, `raw-402` and `raw-403` (`up`, each for calls that make the gateway stop using the key) and `locked` (with a
 * key that the provider does not know).
 */
export async function startClients(vars: Record<string, unknown> = {}): Promise<Clients> {
  const provider = await startProvider(PROVIDER_KEY);
  const prices = { "*": { input: 1, output: 2 } };
  const remote = { kind: "openai", base_url: `${provider.origin}/v1`, api_key: "secret:PROVIDER_KEY", prices };
  // The provider adds nothing to a chat's prompt, so what a call may cost follows from its bytes.
  // It fails on purpose in nearly every call: a gate that adapted to that would make the other tests wait.
  const up = { ...remote, prompt_tokens_per_call: 0, adaptive: { mode: "off" } };
  const UPSTREAMS = {
    up: { ...up, models: ["*"] },
    router: { ...up, base_url: provider.routerUrl, models: [] },
    claude: { ...remote, kind: "anthropic", base_url: provider.origin, models: ["claude-*", "glm-*"] },
    edited: { ...up, models: [], stream_usage: "edit" },
    once: { ...up, models: [], max_attempts: 1 },
    impatient: { ...up, models: [], timeout_ms: 1_500, max_attempts: 1 },
    broke: { ...up, models: [] },
    "raw-401": { ...up, models: [] },
    "raw-402": { ...up, models: [] },
    "raw-403": { ...up, models: [] },
    locked: { ...up, models: [], api_key: WRONG_KEY },
    sim: { kind: "simulated" },
  };
  // Anthropic's models by their plain names before the upstream that takes every name.
  const { up: any, ...others } = UPSTREAMS;
  const gateway = await startGateway({ vars: { UPSTREAMS: { ...others, up: any }, PROVIDER_KEY, ...vars } });
  return {
    gateway,
    provider,
    baseUrl: `${gateway.url}/v1`,
    openRun: async (body) => runOf(gateway, await gateway.openRun(body)),
    stop: async () => {
      await gateway.stop();
      await provider.stop();
    },
  };
}

function runOf(gateway: Gateway, { id, token }: { id: string; token: string }): ClientRun {
  const fetch = (path: string, request?: GatewayRequest) => gateway.fetch(path, { token, ...request });
  const readBudget = async () => budget.parse(await (await fetch("/budget")).json());
  const eventsOf = async (type: string) => {
    const text = await (await fetch(`/runs/${id}/log`)).text();
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.map((line) => attempt.parse(JSON.parse(line))).filter(({ event_type }) => event_type === type);
  };
  return {
    id,
    token,
    fetch,
    budget: readBudget,
    spentNanoUsd: async () => {
      await expect.poll(async () => (await readBudget()).usd.reserved).toBe(0);
      return Math.round((await readBudget()).usd.spent * 1e9);
    },
    attempts: async (count) => {
      await expect.poll(async () => (await eventsOf("attempt_ended")).length).toBe(count);
      return eventsOf("attempt_ended");
    },
    refusals: async () => (await eventsOf("budget_refused")).length,
  };
}

/** A `fetch` for a client, and the cost in the comment behind the last stream that it got, nano-USD. */
export function costReader(): { fetch: typeof fetch; costNanoUsd: () => Promise<number> } {
  let text = Promise.resolve("");
  return {
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      text = response.clone().text();
      return response;
    },
    costNanoUsd: async () => {
      const cost = /\n\n: fanout cost=(\d+(?:\.\d+)?)\n\n$/.exec(await text)?.[1];
      return cost === undefined ? expect.fail("no cost is behind the stream") : Math.round(Number(cost) * 1e9);
    },
  };
}

/** What a promise was rejected with; fails where it was not. */
export async function thrownBy(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return expect.fail("nothing was thrown");
}

/** All that an async iterable yields. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
