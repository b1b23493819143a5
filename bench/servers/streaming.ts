/** The servers that streams are relayed by: no gateway, a bare Worker, Portkey's, the peers, and ours on its three paths. */
import { promptOf } from "../load/prompts.ts";
import { streamBody, type StreamPlan } from "../load/stream.ts";
import { isPeer, PEERS, type PeerName } from "../peers/table.ts";
import type { SuiteOptions } from "../suite.ts";
import { freePort, startNode } from "./process.ts";
import { portkeyEntry } from "../peers/portkey.ts";
import type { Server } from "./process.ts";
import { openRun, portkeyHeaders, startFloor, startGateway } from "./servers.ts";

/**
 * `floor`: a Worker that passes the stream on (workers/floor.ts). `native`: the client requests usage of an upstream without a key, so
 * that the runtime moves the stream. `read`: the upstream has a key, for which each event is searched. `js`: the client does not request
 * usage, either, so that one event is removed. The baselines are those of another checkout.
 */
export type StreamVariant =
  | "direct"
  | "floor"
  | "portkey"
  | PeerName
  | OwnStreamVariant
  | `${OwnStreamVariant}-baseline`;

export type OwnStreamVariant = "native" | "read" | "js";

/** The upstream's key: of a length and with a beginning like those of real ones. */
export const STREAM_API_KEY = "sk-proj-Qx7bench0000guardsNothing9Zk2";

/** All variants; peers if they are requested, those of another checkout only if there is one. */
export function streamVariants({ quick, baseline, peers }: SuiteOptions): StreamVariant[] {
  const own = ownVariants(quick);
  const all: StreamVariant[] = ["direct", "floor", "portkey", ...peers, ...own];
  return baseline === undefined ? all : [...all, ...own.map((variant) => `${variant}-baseline` as const)];
}

/** The gateway's own variants. */
export function ownVariants(quick: boolean): OwnStreamVariant[] {
  return quick ? ["native", "js"] : ["native", "read", "js"];
}

/** A peer says itself what its clients send. */
export type StreamServer = Server & { headers?: Record<string, string> };

/** What people read for a variant. */
export function streamNameOf(variant: StreamVariant): string {
  if (isPeer(variant)) return PEERS[variant].title;
  if (variant === "direct") return "no gateway";
  if (variant === "floor") return "a Worker that relays, with the least durable ledger";
  return variant === "portkey" ? "Portkey" : `fanout, \`${variant}\``;
}

/** Starts what relays; `direct` is the upstream itself, which stays its owner's. */
export async function startVariant(
  variant: StreamVariant,
  upstream: Server,
  baseline: string | undefined,
): Promise<StreamServer> {
  if (isPeer(variant)) return await PEERS[variant].start({ upstreamUrl: upstream.url, budget: null });
  if (variant === "direct") return { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (variant === "floor") return await startFloor(upstream, "shared");
  if (variant === "portkey") return await startStreamingPortkey();
  return await startGateway(upstream, {
    root: variant.endsWith("-baseline") ? baseline : undefined,
    ...(variant.startsWith("native") ? {} : { apiKey: STREAM_API_KEY }),
  });
}

/** Started as in servers.ts, with the module that lets it stream (see portkey-fetch.ts). */
async function startStreamingPortkey(): Promise<Server> {
  const port = await freePort();
  const shim = new URL("../suites/portkey-fetch.ts", import.meta.url).href;
  const entry = portkeyEntry();
  const args = ["--import", shim, entry, `--port=${port}`, "--headless"];
  return await startNode(args, { NODE_ENV: "production" }, (printed) => (printed.includes(String(port)) ? port : null));
}

export type StreamTarget = Pick<StreamPlan, "url" | "headers" | "body" | "hasUsage" | "isRewritten">;

/** Where a variant's clients post what. */
export async function streamTarget(
  variant: StreamVariant,
  upstream: Server,
  server: StreamServer,
): Promise<StreamTarget> {
  const url = `${server.url}/v1/chat/completions`;
  const hasUsage = !variant.startsWith("js");
  if (isPeer(variant)) {
    const { model, rewritesStreams } = PEERS[variant];
    const body = (index: number) => streamBody(promptOf(index), hasUsage, model);
    return { url, headers: server.headers ?? {}, body, hasUsage, isRewritten: rewritesStreams };
  }
  const body = (index: number) => streamBody(promptOf(index), hasUsage);
  const target = { url, body, hasUsage, isRewritten: false };
  const headers = { authorization: "Bearer bench" };
  if (variant === "direct" || variant === "floor") return { ...target, headers };
  if (variant !== "portkey") return { ...target, headers: { authorization: `Bearer ${await openRun(server)}` } };
  return { ...target, headers: { ...headers, ...portkeyHeaders(upstream) } };
}
