/** A gateway that is killed and comes back on the same disk and port, before an upstream that sees both. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, type OpenedRun } from "../../test/support/gateway.ts";
import type { Kill } from "./hit.ts";
import type { RunPlan } from "./plan.ts";
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
};

/** What the dead process has written to its sockets is read within this, ms; the next one needs longer to listen. */
const LAST_BYTES_MS = 20;
/** More than a call can be lost in a volley. */
const ATTEMPTS_MAX = 10;

export async function startKillWorld(plans: readonly RunPlan[]): Promise<KillWorld> {
  const provider = new Provider(plans);
  await using parts = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-kill-"));
  parts.defer(() => rm(dataDir, { recursive: true, force: true }));
  const upstream = await provider.start();
  parts.defer(() => upstream.stop());
  const up = { kind: "openai", base_url: upstream.baseUrl, prices: { "*": PRICES }, max_attempts: ATTEMPTS_MAX };
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS: { up }, DEFAULT_MODEL: "up/bench-small" };
  const start = (port: number) => startGateway({ vars, dataDir, port });
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
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}
