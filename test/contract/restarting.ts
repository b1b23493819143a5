/** A gateway that is killed and started again on the same disk, between clients and an upstream that stay. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamAnswer, type UpstreamCall } from "../support/upstream.ts";
import { answerOf, PROVIDER_KEY, type RunAccess } from "./world.ts";

export type Restarting = {
  upstream: TestUpstream;
  /** The gateway that runs now. */
  gateway: () => Gateway;
  /** Opens a run whose client uses the gateway that is currently running. */
  openRun: (body: Record<string, unknown>) => Promise<RunAccess>;
  /** SIGKILL, and a start on the same disk with `vars` laid over the first ones. */
  restart: (vars?: Record<string, unknown>) => Promise<void>;
  stop: () => Promise<void>;
};

/** A provider as the gateway's configuration names it, at `usd` per million tokens. */
export function providerAt(upstream: TestUpstream, usd: number) {
  const prices = { "*": { input: usd, output: usd } };
  return { kind: "openai", base_url: upstream.baseUrl, api_key: "secret:PROVIDER_KEY", models: ["up-*"], prices };
}

export async function startRestarting(handler?: (call: UpstreamCall) => UpstreamAnswer): Promise<Restarting> {
  const upstream = await startUpstream(handler);
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-disk-"));
  const first = { ADMIN_KEY: randomUUID(), PROVIDER_KEY, UPSTREAMS: { up: providerAt(upstream, 1) } };
  const start = (vars: Record<string, unknown> = {}) => startGateway({ dataDir, vars: { ...first, ...vars } });
  let gateway = await start();
  return {
    upstream,
    gateway: () => gateway,
    openRun: async (body) => {
      const { id, token } = await gateway.openRun(body);
      return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
    },
    restart: async (vars) => {
      await gateway.kill();
      gateway = await start(vars);
    },
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
