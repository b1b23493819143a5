/** The servers that take part: the upstream, the bare Worker, the gateway, and Portkey's gateway as a peer. */
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { MODEL } from "../load/prompts.ts";
import { freePort, startNode } from "./process.ts";
import { portkeyEntry } from "../peers/portkey.ts";
import type { Server } from "./process.ts";
import type { Bundle } from "../../scripts/local/bundle.ts";
import { bundleOf, startWorkerd } from "./workerd.ts";
import type { Workerd } from "./workerd.ts";

/** The operator's key of a gateway under measurement. */
export const ADMIN_KEY = "bench-admin-key-that-guards-nothing";

export type UpstreamOptions = {
  latencyMs?: number;
  replyBytes?: number;
  /** Time between two events of a stream; absent = none. */
  paceMs?: number;
  /** Whether a stream is one event and its end, for gateways that request a stream where their client wants none. */
  hasShortStreams?: boolean;
  /** Where it listens; absent = on a free port. */
  port?: number;
};

/** Starts the upstream in a process of its own. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Server> {
  const entry = fileURLToPath(new URL("upstream.ts", import.meta.url));
  const args = [entry, `--latency-ms=${options.latencyMs ?? 0}`, `--reply-bytes=${options.replyBytes ?? 0}`];
  if (options.paceMs !== undefined) args.push(`--pace-ms=${options.paceMs}`);
  if (options.hasShortStreams === true) args.push("--short-streams");
  if (options.port !== undefined) args.push(`--port=${options.port}`);
  return await startNode(args, {}, (printed) => {
    const port = /^(\d+)\n/.exec(printed)?.[1];
    return port === undefined ? null : Number(port);
  });
}

const upstreamStats = z.object({ requests: z.number(), peak: z.number() });

/** Counts since the last call: requests the upstream saw, and the most it had in flight at once. */
export async function takeUpstreamStats(upstream: Server): Promise<z.infer<typeof upstreamStats>> {
  const response = await fetch(`${upstream.url}/stats?reset=1`);
  return upstreamStats.parse(await response.json());
}

/** Module of the gateway's Worker. */
const GATEWAY = "src/index.ts";

const bundles = new Map<string, Promise<Bundle>>();

/** Bundled once per bench: every round measures the same source, even if it is edited meanwhile. */
function bundleOnce(entryPoint: string, root?: string): Promise<Bundle> {
  const key = `${root ?? ""} ${entryPoint}`;
  const bundle = bundles.get(key) ?? bundleOf(entryPoint, root);
  bundles.set(key, bundle);
  return bundle;
}

/** The gateway's bundle: of this checkout, or of the one at `root`. */
export function gatewayBundle(root?: string): Promise<Bundle> {
  return bundleOnce(GATEWAY, root);
}

/** The bundle of the gateway that can say which of its functions ran. */
export function watchedBundle(): Promise<Bundle> {
  return bundleOnce("bench/workers/watched-gateway.ts");
}

/** Starts the Worker that makes the same fetches and keeps nothing. */
export async function startBare(upstream: Server): Promise<Workerd> {
  const bundle = await bundleOnce("bench/workers/bare.ts");
  return await startWorkerd({ bundle, vars: { UPSTREAM: upstream.url }, objects: {} });
}

/** Starts the Worker that relays a call: with no ledger, or with the least one that commits once for all calls that wait. */
export async function startFloor(upstream: Server, ledger: "none" | "shared"): Promise<Workerd> {
  const bundle = await bundleOnce("bench/workers/floor.ts");
  const vars = { UPSTREAM: upstream.url, LEDGER: ledger };
  return await startWorkerd({ bundle, vars, objects: { FLOOR: "FloorLedger" } });
}

export type GatewayOptions = {
  inspector?: boolean;
  /** What is served; absent = the gateway as it is. */
  entryPoint?: "bench/workers/ledger-gateway.ts" | "bench/workers/far-gateway.ts" | "bench/workers/runs-gateway.ts";
  /** How long a method of a run object takes there and back, ms, if far-gateway.ts is served. */
  runObjectRttMs?: number;
  /** ROOT_BUDGET_USD_PER_DAY; absent = none. */
  rootUsdPerDay?: string;
  /** Another checkout to take the gateway's source from, such as a git worktree of an older commit. */
  root?: string | undefined;
  /** What runs instead of the bundled source; absent = that. */
  bundle?: Bundle;
  /** LEASED_CREDIT of the gateway. */
  leasedCredit?: "on" | "off";
  /** The upstream's key: what comes from it is searched for it. Absent = it has none. */
  apiKey?: string;
  /** Prices of the upstream, USD per million tokens. */
  prices?: { input: number; output: number };
};

/** Starts the gateway with one priced upstream, its state on disk. */
export async function startGateway(upstream: Server, options: GatewayOptions = {}): Promise<Workerd> {
  const up = {
    kind: "openai",
    base_url: `${upstream.url}/v1`,
    models: ["*"],
    ...(options.apiKey === undefined ? {} : { api_key: options.apiKey }),
    prices: { "*": options.prices ?? { input: 0.15, output: 0.6 } },
  };
  return await startWorkerd({
    bundle: options.bundle ?? (await bundleOnce(options.entryPoint ?? GATEWAY, options.root)),
    // Plain workerd lets any number of fetches wait for headers, as under npm start; with 6 the gateway behaves as on Cloudflare.
    vars: {
      LEASED_CREDIT: options.leasedCredit ?? "on",
      WAITING_FETCHES_MAX: process.env["WAITING_FETCHES_MAX"] ?? "512",
      ADMIN_KEY,
      UPSTREAMS: JSON.stringify({ up }),
      DEFAULT_MODEL: `up/${MODEL}`,
      ...(options.rootUsdPerDay === undefined ? {} : { ROOT_BUDGET_USD_PER_DAY: options.rootUsdPerDay }),
      ...(options.runObjectRttMs === undefined ? {} : { RUN_OBJECT_RTT_MS: String(options.runObjectRttMs) }),
    },
    objects: "gateway",
    inspector: options.inspector === true,
  });
}

/** Starts the gateway with the routes that ask its ledger directly. */
export async function startLedger(upstream: Server): Promise<Workerd> {
  return await startGateway(upstream, { entryPoint: "bench/workers/ledger-gateway.ts" });
}

/** Limits of every dimension, so that the ledger has all of its work to do, and none is ever reached. */
const BUDGET = { usd: 100_000, calls: 1e8, prompt_tokens: 1e12, completion_tokens: 1e12 };

const openedRun = z.object({ id: z.string(), token: z.string() });

/**
 * Opens a run as wide as the platform allows; returns its token. Without `budget` its limits are never reached. `rules`:
 * further fields of the request.
 */
export async function openRun(
  gateway: Server,
  budget: Record<string, number> = BUDGET,
  rules: Record<string, unknown> = {},
): Promise<string> {
  return (await openRunWithId(gateway, budget, rules)).token;
}

/** The same with the id of the run. */
export async function openRunWithId(
  gateway: Server,
  budget: Record<string, number> = BUDGET,
  rules: Record<string, unknown> = {},
): Promise<z.infer<typeof openedRun>> {
  const response = await fetch(`${gateway.url}/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ max_parallel: 512, budget, ...rules }),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`POST /runs answered ${response.status}: ${text}\n${gateway.output()}`);
  return openedRun.parse(JSON.parse(text));
}

/** Starts Portkey's gateway as its own command does, without the console that keeps a log of every request. */
export async function startPortkey(): Promise<Server> {
  const port = await freePort();
  const entry = portkeyEntry();
  return await startNode([entry, `--port=${port}`, "--headless"], { NODE_ENV: "production" }, (printed) =>
    printed.includes(String(port)) ? port : null,
  );
}

/** What a client of Portkey's gateway sends to reach the upstream. */
export function portkeyHeaders(upstream: Server): Record<string, string> {
  return { "x-portkey-provider": "openai", "x-portkey-custom-host": `${upstream.url}/v1` };
}
