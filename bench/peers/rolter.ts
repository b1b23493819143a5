/** rolter, a gateway in Rust: one provider, one route, no keys. */
import { CATALOGUE_MODEL } from "../load/prompts.ts";
import { type Peer, type Place, startPeer } from "./peer.ts";

const install = { name: "rolter", version: "0.1.0", pythonMinorMin: 9 } as const;

/** By default its queue sends one call at a time. */
function config({ upstreamUrl, port }: Place): string {
  return `[server]
host = "127.0.0.1"
port = ${port}

[queue]
enabled = false

[[providers]]
name = "up"
kind = "openai_compatible"
api_base = "${upstreamUrl}"

[[routes]]
model = "${CATALOGUE_MODEL}"
strategy = "round_robin"

[[routes.targets]]
provider = "up"
model = "${CATALOGUE_MODEL}"
`;
}

export const rolter: Peer = {
  title: "rolter",
  about: "Rust, one route to one provider, no keys, its queue off. Its budgets need Redis and were not measured",
  install,
  model: CATALOGUE_MODEL,
  budget: "none",
  rewritesStreams: false,
  isSlow: false,
  config,
  start: (options) =>
    startPeer(
      {
        install,
        program: "rolter",
        config,
        configName: "rolter.toml",
        args: ({ configFile }) => ["gateway", "--config", configFile],
        env: () => ({ ROLTER_UPDATE_CHECK: "false", RUST_LOG: "error" }),
        readyPath: "/health",
      },
      options,
    ),
};
