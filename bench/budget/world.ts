/** What a storm runs in: an upstream that bills, and a gateway that can be killed and started again on the same disk. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { startGateway, type OpenedRun } from "../../test/support/gateway.ts";
import { startNode } from "../servers/process.ts";
import { PRICES } from "./tariff.ts";

/** `nanoUsd` is what the upstream bills in all; `accounts` by name of the call. */
export type Bill = {
  nanoUsd: number;
  inFlight: number;
  billedAnswers: number;
  accounts: Map<string, { nanoUsd: number; unsure: number; requests: number }>;
};

export type StormWorld = AsyncDisposable & {
  url: string;
  bill: () => Promise<Bill>;
  openRun: (body: Record<string, unknown>) => Promise<OpenedRun>;
  /** SIGKILL, then a new process on the same port and disk. */
  restart: () => Promise<void>;
};

export type WorldOptions = { faults?: boolean; latencyMs?: number; attemptsMax?: number };

/** Time limit of an attempt, ms: what hangs ends within a storm. */
const TIMEOUT_MS = 1_500;

const account = z.object({ nanoUsd: z.number(), unsure: z.number(), requests: z.number() });
const bill = z.object({
  inFlight: z.number(),
  billedAnswers: z.number(),
  accounts: z.array(z.tuple([z.string(), account])),
});

export async function startStormWorld(options: WorldOptions = {}): Promise<StormWorld> {
  const upstream = await startBiller(options);
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-budget-"));
  const up = {
    kind: "openai",
    base_url: `${upstream.url}/v1`,
    prices: { "*": PRICES },
    timeout_ms: options.latencyMs === undefined ? TIMEOUT_MS : 600_000,
    max_attempts: options.attemptsMax ?? 3,
  };
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS: { up }, DEFAULT_MODEL: "up/bench-small" };
  const start = (port: number) => startGateway({ vars, dataDir, port });
  let gateway = await start(0);
  /** Its clients find it at the same address after a restart. */
  const port = Number(new URL(gateway.url).port);
  return {
    url: gateway.url,
    bill: () => billOf(upstream.url),
    openRun: (body) => gateway.openRun(body),
    restart: async () => {
      await gateway.kill();
      gateway = await start(port);
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.kill();
      await upstream[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function startBiller({ faults, latencyMs }: WorldOptions) {
  const args = [fileURLToPath(new URL("biller.ts", import.meta.url))];
  if (faults === true) args.push("--faults");
  if (latencyMs !== undefined) args.push(`--latency-ms=${latencyMs}`);
  return await startNode(args, {}, (printed) => {
    const port = /^(\d+)\n/.exec(printed)?.[1];
    return port === undefined ? null : Number(port);
  });
}

async function billOf(url: string): Promise<Bill> {
  const response = await fetch(`${url}/bill`);
  const { inFlight, billedAnswers, accounts } = bill.parse(await response.json());
  const nanoUsd = accounts.reduce((sum, [, account]) => sum + account.nanoUsd, 0);
  return { nanoUsd, inFlight, billedAnswers, accounts: new Map(accounts) };
}
