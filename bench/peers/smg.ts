/** smg, a gateway in Rust: one external worker, which is registered after its start. */
import { setTimeout as sleep } from "node:timers/promises";
import { CATALOGUE_MODEL, completionBody, promptOf } from "../load/prompts.ts";
import { type Peer, PEER_KEY, type Place, startPeer, type StartedPeer } from "./peer.ts";

const install = { name: "smg", version: "1.13.0", pythonMinorMin: 9 } as const;

/** What it is sent once it serves. It asks its worker which models it has. */
function config({ upstreamUrl }: Pick<Place, "upstreamUrl">): string {
  return JSON.stringify({ url: upstreamUrl, api_key: PEER_KEY, runtime_type: "external", provider: "openai" });
}

/** Longest wait until a worker takes calls, ms. */
const REGISTERED_MS_MAX = 20_000;
const POLL_MS = 50;

async function register(server: StartedPeer, upstreamUrl: string): Promise<void> {
  const headers = { ...server.headers, "content-type": "application/json" };
  const posted = await fetch(`${server.url}/workers`, { method: "POST", headers, body: config({ upstreamUrl }) });
  if (!posted.ok) throw new Error(`POST /workers answered ${posted.status}: ${await posted.text()}`);
  const endMs = performance.now() + REGISTERED_MS_MAX;
  const body = completionBody(promptOf(0), CATALOGUE_MODEL);
  for (;;) {
    const answer = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.ok) return;
    if (performance.now() > endMs) throw new Error(`its worker takes no calls: ${answer.status} ${text}`);
    await sleep(POLL_MS);
  }
}

export const smg: Peer = {
  title: "smg",
  about: "Rust, `launch --enable-igw` with the upstream as an external worker. It keeps no budget",
  install,
  model: CATALOGUE_MODEL,
  budget: "none",
  rewritesStreams: false,
  isSlow: false,
  config,
  start: async (options) => {
    const server = await startPeer(
      {
        install,
        program: "smg",
        args: ({ port }) => [
          "launch",
          "--enable-igw",
          "--log-level",
          "error",
          "--host",
          "127.0.0.1",
          "--port",
          String(port),
        ],
        readyPath: "/health",
      },
      options,
    );
    try {
      await register(server, options.upstreamUrl);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  },
};
