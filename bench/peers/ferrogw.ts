/** ferrogw, a gateway in Go: one target, its rate limit off, and its budget as the plugin of that name. */
import { CATALOGUE_MODEL } from "../load/prompts.ts";
import { type Peer, PEER_KEY, type Place, startPeer } from "./peer.ts";

const install = { name: "ferrogw", version: "1.5.10", pythonMinorMin: 9 } as const;

function config({ budget }: Place): string {
  const settings =
    budget === null
      ? null
      : {
          spend_limit_usd: budget.usd,
          input_per_m_tokens: budget.prices.input,
          output_per_m_tokens: budget.prices.output,
        };
  // One of the two compares, the other one counts.
  const stages = settings === null ? [] : ["before_request", "after_request"];
  const plugins = stages.map((stage) => ({
    name: "budget",
    type: "ratelimit",
    stage,
    enabled: true,
    config: settings,
  }));
  return JSON.stringify({ strategy: { mode: "single" }, targets: [{ virtual_key: "openai" }], plugins });
}

export const ferrogw: Peer = {
  title: "ferrogw",
  about:
    "Go, one binary; one target, its rate limit off. Its budget is the plugin `budget`, which compares and counts in memory",
  install,
  model: CATALOGUE_MODEL,
  budget: "soft",
  rewritesStreams: true,
  isSlow: false,
  config,
  start: (options) =>
    startPeer(
      {
        install,
        program: "ferrogw",
        config,
        args: () => [],
        env: ({ configFile, port, upstreamUrl }) => ({
          GATEWAY_CONFIG: configFile,
          MASTER_KEY: PEER_KEY,
          OPENAI_API_KEY: PEER_KEY,
          OPENAI_BASE_URL: `${upstreamUrl}/v1`,
          PORT: String(port),
          LOG_LEVEL: "error",
          // By default it answers 429 within 300 calls.
          RATE_LIMIT_RPS: "0",
        }),
        readyPath: "/health",
      },
      options,
    ),
};
