/** A gateway in front of one limited provider, and what the parts of the bench do with it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { startGateway, type Gateway, type OpenedRun, type Version } from "../../test/support/gateway.ts";
import { steady, type Latency } from "../../test/support/limited/latency.ts";
import type { Limiter } from "../../test/support/limited/limiter.ts";
import { startLimitedServer, type LimitedServer } from "../../test/support/limited/server.ts";

export type GateWorld = {
  provider: LimitedServer;
  gateway: Gateway;
  /** A run whose budget is never reached. */
  openRun(settings?: Record<string, unknown>): Promise<OpenedRun>;
  /** SIGKILL of the whole gateway, and a start on the same disk. */
  restart(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

export type WorldOptions = {
  limiter: Limiter;
  latency?: Latency;
  kind?: "openai" | "anthropic";
  /** Further fields of the upstream. */
  upstream?: Record<string, unknown>;
  /** Another version of the gateway. */
  version?: Version;
};

/** Completion cap of every call. */
export const CAP_TOKENS = 16;
const PRICES = { "*": { input: 0.15, output: 0.6 } };

export async function startGateWorld(options: WorldOptions): Promise<GateWorld> {
  const provider = await startLimitedServer(options.limiter, options.latency ?? steady(50));
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-gate-"));
  const { kind = "openai" } = options;
  const base_url = kind === "openai" ? provider.baseUrl : provider.origin;
  const up = { kind, base_url, api_key: "bench-key", models: ["*"], prices: PRICES, ...options.upstream };
  const vars = { ADMIN_KEY: "bench-admin-key-that-guards-nothing", UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" };
  const start = (): Promise<Gateway> =>
    startGateway({ vars, dataDir, ...(options.version === undefined ? {} : { script: options.version }) });
  let gateway = await start();
  return {
    provider,
    get gateway() {
      return gateway;
    },
    openRun: (settings = {}) => gateway.openRun({ max_parallel: 64, budget: { usd: 1_000 }, ...settings }),
    restart: async () => {
      await gateway.kill();
      gateway = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.stop();
      await provider.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

const answered = z.looseObject({ results: z.array(z.string()) });
export type BatchAnswer = z.infer<typeof answered>;

/** The prompts of a batch, each its own. */
export function prompts(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${name} ${at}`);
}

/** Sends a batch and waits for its answer. */
export async function batch(
  { gateway }: GateWorld,
  token: string,
  body: { prompts: string[] } & Record<string, unknown>,
): Promise<BatchAnswer> {
  const answer = await gateway.fetch("/batch", { token, json: { max_tokens: CAP_TOKENS, ...body } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`/batch answered ${answer.status}: ${text}`);
  return answered.parse(JSON.parse(text));
}

/** Sends one query; returns how long it took, ms, and its status. */
export async function query(
  { gateway }: GateWorld,
  token: string,
  prompt: string,
): Promise<{ ms: number; status: number }> {
  const startedMs = performance.now();
  const answer = await gateway.fetch("/query", { token, json: { prompt, max_tokens: CAP_TOKENS } });
  await answer.arrayBuffer();
  return { ms: performance.now() - startedMs, status: answer.status };
}

const group = z.looseObject({
  id: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.int()),
});
export type GroupLook = z.infer<typeof group>;

/** Opens a batch that nobody waits for. */
export async function openBatch(
  { gateway }: GateWorld,
  token: string,
  body: { prompts: string[] } & Record<string, unknown>,
): Promise<string> {
  const headers = { prefer: "respond-async" };
  const answer = await gateway.fetch("/batch", { token, headers, json: { max_tokens: CAP_TOKENS, ...body } });
  const text = await answer.text();
  if (answer.status !== 202) throw new Error(`/batch answered ${answer.status}: ${text}`);
  return z.looseObject({ id: z.string() }).parse(JSON.parse(text)).id;
}

/** A group as it is now, or when it has ended or `waitMs` are over. */
export async function look({ gateway }: GateWorld, token: string, id: string, waitMs = 0): Promise<GroupLook> {
  const answer = await gateway.fetch(`/groups/${id}?wait_ms=${waitMs}`, { token });
  return group.parse(await answer.json());
}

/** Waits until the condition holds, at most `ms`. False: it never did. */
export async function until(holds: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    if (await holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return await holds();
}
