/** What takes part in the suites on single calls: no gateway, ours by two ways in, Portkey's, and LiteLLM's with peers. */
import type { LoadPlan } from "../load/load.ts";
import { completionBody, promptOf } from "../load/prompts.ts";
import { benchModel, LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import type { Server } from "../servers/process.ts";
import { openRun, portkeyHeaders, startGateway, startPortkey } from "../servers/servers.ts";
import { chatTarget, queryTarget } from "../suites/query.ts";
import type { SuiteOptions } from "../suite.ts";

/** `query` is `POST /query` and `chat` `POST /v1/chat/completions` of this gateway, in one run with a limit in each dimension. */
export type Contender = "direct" | "query" | "chat" | "portkey" | "litellm";

export function contenders({ peers }: Pick<SuiteOptions, "peers">): Contender[] {
  return ["direct", "query", "chat", "portkey", ...(peers ? (["litellm"] as const) : [])];
}

/** What people read for a contender. */
export const NAMES: Record<Contender, string> = {
  direct: "no gateway",
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
  if (name === "portkey") return await startPortkey();
  if (name === "litellm") return await startLitellm({ models: [benchModel(upstream.url)] });
  return await startGateway(upstream);
}

async function targetOf(name: Contender, upstream: Server, server: Server): Promise<Target> {
  if (name === "query") return queryTarget(server, await openRun(server));
  if (name === "chat") return chatTarget(server, await openRun(server));
  const bearer = { authorization: "Bearer bench" };
  const headers = { direct: bearer, portkey: { ...bearer, ...portkeyHeaders(upstream) }, litellm: LITELLM_HEADERS };
  return {
    url: `${server.url}/v1/chat/completions`,
    headers: headers[name],
    body: (at) => completionBody(promptOf(at)),
  };
}
