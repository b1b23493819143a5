/** What takes part in the suites on single calls: no gateway, bare Workers, ours by two ways in, Portkey's, and the peers. */
import type { LoadPlan } from "../load/load.ts";
import { completionBody, promptOf } from "../load/prompts.ts";
import { isPeer, PEERS, type PeerName } from "../peers/table.ts";
import type { Server } from "../servers/process.ts";
import {
  openRun,
  portkeyHeaders,
  startFloor,
  startGateway,
  startPortkey,
  startUpstream,
  type UpstreamOptions,
} from "../servers/servers.ts";
import { chatTarget, queryTarget } from "../suites/query.ts";
import type { Cell, SuiteOptions } from "../suite.ts";

/**
 * `query` is `POST /query` and `chat` `POST /v1/chat/completions` of this gateway, in one run with a limit in each dimension. `relay`
 * is a Worker that only relays, `floor` the same with the least ledger (workers/floor.ts).
 */
export type Contender = OwnContender | PeerName;

type OwnContender = "direct" | "relay" | "floor" | "query" | "chat" | "portkey";

export function contenders({ quick, peers }: Pick<SuiteOptions, "quick" | "peers">): Contender[] {
  const bare: Contender[] = quick ? ["floor"] : ["relay", "floor"];
  return ["direct", ...bare, "query", "chat", "portkey", ...peers];
}

const OWN_NAMES: Record<OwnContender, string> = {
  direct: "no gateway",
  relay: "a Worker that only relays",
  floor: "the same with the least durable ledger",
  query: "fanout `/query`",
  chat: "fanout `/v1`",
  portkey: "Portkey",
};

/** What people read for a contender. */
export function nameOf(contender: Contender): string {
  return isPeer(contender) ? PEERS[contender].title : OWN_NAMES[contender];
}

/** What a cell of a variant is beside its measurement: a peer may fail, and a slow one is measured once. */
export function cellOf(variant: string, at: number): Pick<Cell, "variant" | "at" | "mayFail" | "isOnce"> {
  return isPeer(variant) ? { variant, at, mayFail: true, isOnce: PEERS[variant].isSlow } : { variant, at };
}

/** Starts the upstream of a variant. */
export async function startUpstreamOf(variant: string, options: UpstreamOptions = {}): Promise<Server> {
  const port = isPeer(variant) ? await PEERS[variant].upstreamPort?.() : undefined;
  return await startUpstream(port === undefined ? options : { ...options, port });
}

export type Target = Pick<LoadPlan, "url" | "headers" | "body">;

/** A started contender and where its clients post. */
export type Started = AsyncDisposable & { server: Server; target: Target };

export async function startContender(name: Contender, upstream: Server): Promise<Started> {
  if (isPeer(name)) return await startPeerContender(name, upstream);
  const server = await serverOf(name, upstream);
  const own = name === "direct" ? {} : server;
  return {
    server,
    target: await targetOf(name, upstream, server),
    // The upstream belongs to its caller.
    [Symbol.asyncDispose]: async () => {
      if (own === server) await server[Symbol.asyncDispose]();
    },
  };
}

async function startPeerContender(name: PeerName, upstream: Server): Promise<Started> {
  const { start, model } = PEERS[name];
  const server = await start({ upstreamUrl: upstream.url, budget: null });
  const url = `${server.url}/v1/chat/completions`;
  const target = { url, headers: server.headers, body: (at: number) => completionBody(promptOf(at), model) };
  return { server, target, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

async function serverOf(name: OwnContender, upstream: Server): Promise<Server> {
  if (name === "direct") return upstream;
  if (name === "relay") return await startFloor(upstream, "none");
  if (name === "floor") return await startFloor(upstream, "shared");
  if (name === "portkey") return await startPortkey();
  return await startGateway(upstream);
}

async function targetOf(name: OwnContender, upstream: Server, server: Server): Promise<Target> {
  if (name === "query") return queryTarget(server, await openRun(server));
  if (name === "chat") return chatTarget(server, await openRun(server));
  const headers = { authorization: "Bearer bench" };
  return {
    url: `${server.url}/v1/chat/completions`,
    headers: name === "portkey" ? { ...headers, ...portkeyHeaders(upstream) } : headers,
    body: (at) => completionBody(promptOf(at)),
  };
}
