/** What every part of the bench runs in: a provider that counts, in a process of its own, and a gateway with R2 on a disk. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { z } from "zod";
import { openRun, type OpenedRun } from "../../test/support/gateway.ts";
import { startR2Gateway } from "../../test/support/r2-gateway.ts";
import { startNode } from "../servers/process.ts";
import type { Server } from "../servers/process.ts";
import { MODEL } from "../load/prompts.ts";

export type ProviderOptions = { latencyMs?: number; turnAway?: number };

const stats = z.object({
  requests: z.int(),
  /** Calls that came whole and are not answered yet. */
  inFlight: z.int(),
  peak: z.int(),
  turnedAway: z.int(),
  answered: z.int(),
  /** Calls whose client had gone when they were to be answered. */
  abandoned: z.int(),
  /** Different lines that came, and how many calls came beyond one for each. */
  lines: z.int(),
  repeated: z.int(),
});
export type ProviderStats = z.infer<typeof stats>;

export async function startProvider({ latencyMs = 0, turnAway = 0 }: ProviderOptions): Promise<Server> {
  const entry = fileURLToPath(new URL("provider.ts", import.meta.url));
  return await startNode([entry, `--latency-ms=${latencyMs}`, `--turn-away=${turnAway}`], {}, (printed) => {
    const port = /^(\d+)\n/.exec(printed)?.[1];
    return port === undefined ? null : Number(port);
  });
}

export async function statsOf(provider: Server): Promise<ProviderStats> {
  return stats.parse(await (await fetch(`${provider.url}/stats`)).json());
}

/** USD per million tokens of the provider. */
const PRICES = { "*": { input: 0.15, cached_input: 0.075, output: 0.6 } };

/** Vars of a gateway with the provider as its one upstream. */
export function varsFor(provider: Pick<Server, "url">): {
  ADMIN_KEY: string;
  UPSTREAMS: z.infer<ReturnType<typeof z.json>>;
} {
  const up = { kind: "openai", base_url: `${provider.url}/v1`, models: ["*"], prices: PRICES };
  return { ADMIN_KEY: randomUUID(), UPSTREAMS: { up } };
}

/** A run, and OpenAI's client under its token. */
export type BatchRun = OpenedRun & { url: string; openai: OpenAI };

/** Limits of every dimension, so that the ledger has all of its work to do, and none is ever reached. */
const BUDGET = { usd: 100_000, calls: 1e8, prompt_tokens: 1e12, completion_tokens: 1e12 };

/** Opens a run at the gateway of `url`. */
export async function openBatchRun(url: string, adminKey: string, maxParallel: number): Promise<BatchRun> {
  const run = await openRun(url, adminKey, { max_parallel: maxParallel, default_model: `up/${MODEL}`, budget: BUDGET });
  return { ...run, url, openai: new OpenAI({ apiKey: run.token, baseURL: `${url}/v1` }) };
}

export type World = AsyncDisposable & {
  url: string;
  provider: Server;
  openRun: (maxParallel: number) => Promise<BatchRun>;
  /** SIGKILL, and a start on the same disk and port. */
  restart: () => Promise<void>;
};

export async function startWorld(options: ProviderOptions): Promise<World> {
  const provider = await startProvider(options);
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-batch-"));
  const vars = varsFor(provider);
  const start = (port: number) => startR2Gateway({ vars, dataDir, port });
  let gateway = await start(0);
  /** Its clients find it at the same address after a restart. */
  const port = Number(new URL(gateway.url).port);
  return {
    url: gateway.url,
    provider,
    openRun: (maxParallel) => openBatchRun(gateway.url, vars.ADMIN_KEY, maxParallel),
    restart: async () => {
      await gateway.kill();
      gateway = await start(port);
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.kill();
      await provider[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
