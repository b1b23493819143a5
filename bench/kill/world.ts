/** A gateway that is killed and comes back on the same disk and port, before an upstream that sees both. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { startGateway, type OpenedRun } from "../../test/support/gateway.ts";
import { startR2Gateway } from "../../test/support/r2-gateway.ts";
import type { Kill } from "./hit.ts";
import type { Detached, RunPlan } from "./plan.ts";
import { PRICES, Provider } from "./provider.ts";
import { sleep } from "./wait.ts";

export type KillWorld = AsyncDisposable & {
  url: string;
  provider: Provider;
  /** How long the gateway has been up, ms; 0 while it is down. */
  upForMs: () => number;
  openRun: (body: Record<string, unknown>) => Promise<OpenedRun>;
  /** SIGKILL; after `downMs`, a new process. */
  kill: (downMs: number) => Promise<Kill>;
  /** What has begun in the present process; null where no Workflow is bound. */
  executors: () => Promise<Executors | null>;
  /** Has the Workflow instance of a run's first group run again, as Cloudflare does. False if it was not lost, or was never created. Rejects while the gateway is down. */
  resumeInstance: (runId: string) => Promise<boolean>;
};

const executors = z.strictObject({ lanes: z.int(), instances: z.int() });
export type Executors = z.infer<typeof executors>;

/** What the dead process has written to its sockets is read within this, ms; the next one needs longer to listen. */
const LAST_BYTES_MS = 20;
/** The gateway where Workflows are bound. */
const WORKFLOW_GATEWAY = "bench/workers/workflow-gateway.ts";
/** More than a call can be lost in a volley. */
const ATTEMPTS_MAX = 10;

const ON_LANES: Detached = { executor: "lanes", waitingFetchesMax: 512 };

/** @param detached Who executes batches without a client, and how many fetches may wait for headers. */
export async function startKillWorld(plans: readonly RunPlan[], detached = ON_LANES): Promise<KillWorld> {
  const provider = new Provider(plans);
  await using parts = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-kill-"));
  parts.defer(() => rm(dataDir, { recursive: true, force: true }));
  const upstream = await provider.start();
  parts.defer(() => upstream.stop());
  const up = { kind: "openai", base_url: upstream.baseUrl, prices: { "*": PRICES }, max_attempts: ATTEMPTS_MAX };
  const vars = {
    ADMIN_KEY: randomUUID(),
    UPSTREAMS: { up },
    DEFAULT_MODEL: "up/bench-small",
    WAITING_FETCHES_MAX: String(detached.waitingFetchesMax),
  };
  const hasWorkflows = detached.executor === "workflow";
  const start = (port: number) =>
    hasWorkflows
      ? startR2Gateway({ vars, dataDir, port, hasWorkflows, entryPoint: WORKFLOW_GATEWAY })
      : startGateway({ vars, dataDir, port });
  let gateway = await start(0);
  /** Its clients find it at the same address after a restart. */
  const port = Number(new URL(gateway.url).port);
  parts.defer(() => gateway.kill());
  let upMs = performance.now();
  const whole = parts.move();
  return {
    url: gateway.url,
    provider,
    upForMs: () => Math.max(0, performance.now() - upMs),
    openRun: (body) => gateway.openRun(body),
    kill: async (downMs) => {
      const atMs = performance.now();
      upMs = Infinity;
      await gateway.kill();
      await sleep(LAST_BYTES_MS);
      const overMs = performance.now();
      await sleep(downMs);
      gateway = await start(port);
      upMs = performance.now();
      return { atMs, overMs, upMs };
    },
    executors: async () => {
      if (!hasWorkflows) return null;
      return executors.parse(await (await gateway.fetch("/bench/executors")).json());
    },
    resumeInstance: async (runId) => {
      const { status } = await gateway.fetch(`/bench/instances/${runId}-1`, { method: "POST" });
      return status === 204;
    },
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}
