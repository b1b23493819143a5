/** What takes part in the suites on single calls: no gateway, bare Workers, ours by two ways in, Portkey's, and LiteLLM's with peers. */
import type { LoadPlan } from "../load/load.ts";
import { completionBody, promptOf } from "../load/prompts.ts";
import { benchModel, LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import type { Server } from "../servers/process.ts";
import { openRun, portkeyHeaders, startFloor, startGateway, startPortkey } from "../servers/servers.ts";
import { chatTarget, queryTarget } from "../suites/query.ts";
import type { SuiteOptions } from "../suite.ts";

/**
 * `query` is `POST /query` and `chat` `POST /v1/chat/completions` of this gateway, in one run with a limit in each dimension. `relay`
 * is a Worker that only relays, `floor` the same with the least ledger (workers/floor.ts).
 */
export type Contender = "direct" | "relay" | "floor" | "query" | "chat" | "portkey" | "litellm";

export function contenders({ quick, peers }: Pick<SuiteOptions, "quick" | "peers">): Contender[] {
  const bare: Contender[] = quick ? ["floor"] : ["relay", "floor"];
  return ["direct", ...bare, "query", "chat", "portkey", ...(peers ? (["litellm"] as const) : [])];
}

/** What people read for a contender. */
export const NAMES: Record<Contender, string> = {
  direct: "no gateway",
  relay: "a Worker that only relays",
  floor: "the same with the least durable ledger",
  query: "fanout `/query`",
  chat: "fanout `/v1`",
  portkey: "Portkey",
  litellm: "LiteLLM",
};

export type Target = Pick<LoadPlan, "url" | "headers" | "body">;

/** A started contender and where its clients post. */
export type Started = AsyncDisposable & { server: Server; target: Target };

export async function startContender(name: Contender, upstream: Server): Promise<Started> {
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

async function serverOf(name: Contender, upstream: Server): Promise<Server> {
  if (name === "direct") return upstream;
  if (name === "relay") return await startFloor(upstream, "none");
  if (name === "floor") return await startFloor(upstream, "shared");
  if (name === "portkey") return await startPortkey();
  if (name === "litellm") return await startLitellm({ models: [benchModel(upstream.url)] });
  return await startGateway(upstream);
}

async function targetOf(name: Contender, upstream: Server, server: Server): Promise<Target> {
  if (name === "query") return queryTarget(server, await openRun(server));
  if (name === "chat") return chatTarget(server, await openRun(server));
  const bearer = { authorization: "Bearer bench" };
  const headers = {
    ...{ direct: bearer, relay: bearer, floor: bearer, litellm: LITELLM_HEADERS },
    portkey: { ...bearer, ...portkeyHeaders(upstream) },
  };
  return {
    url: `${server.url}/v1/chat/completions`,
    headers: headers[name],
    body: (at) => completionBody(promptOf(at)),
  };
}
