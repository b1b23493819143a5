/** Whether the hosts of configured upstreams can be reached from this machine: a wrong `base_url` is named before the first call. */
import { connect as connectPlain } from "node:net";
import { connect as connectTls } from "node:tls";
import { parseConfig } from "../src/env.ts";
import { isRemote } from "../src/providers/kinds/table.ts";
import { checkToolUrl } from "../src/tools/url.ts";

/** Time for a connection and its TLS handshake, ms: beyond it, a host is as good as unreachable to who waits at a terminal. */
const CONNECT_MS_MAX = 5_000;

/**
 * One sentence for each upstream to whose host no connection can be made, with the reason; an empty list if the variables are
 * wrong, which the gateway itself reports.
 * @param isDeployed The gateway runs on Cloudflare: a host of this machine's network is out of its reach, whether it answers here or not.
 */
export async function unreachableUpstreams(
  vars: Readonly<Record<string, unknown>>,
  { isDeployed = false }: { isDeployed?: boolean } = {},
): Promise<string[]> {
  const parsed = parseConfig(vars);
  if (!parsed.ok) return [];
  const called = parsed.config.upstreams.filter(isRemote);
  const found = await Promise.all(
    called.map(async ({ name, baseUrl }) => {
      const { protocol, hostname, port } = new URL(baseUrl);
      if (isDeployed && !checkToolUrl(baseUrl, []).ok) {
        return [
          `the upstream ${name} is out of a Worker's reach: the host of its base_url ${baseUrl} is not on the public internet`,
        ];
      }
      const tls = protocol === "https:";
      const why = await failureOf(hostname, port === "" ? (tls ? 443 : 80) : Number(port), tls);
      return why === null
        ? []
        : [
            `the upstream ${name} cannot be reached${isDeployed ? " from this machine" : ""} at its base_url ${baseUrl}: ${why}`,
          ];
    }),
  );
  return found.flat();
}

/** Why no connection can be made; null = one can. */
async function failureOf(hostname: string, port: number, tls: boolean): Promise<string | null> {
  // An address in brackets is an IPv6 address of a URL.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const socket = tls ? connectTls({ host, port, servername: host }) : connectPlain({ host, port });
  const { promise, resolve } = Promise.withResolvers<string | null>();
  socket.once(tls ? "secureConnect" : "connect", () => resolve(null));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(WORDS[error.code ?? ""] ?? error.message));
  socket.setTimeout(CONNECT_MS_MAX, () => resolve(`no answer within ${CONNECT_MS_MAX / 1_000} s`));
  const why = await promise;
  socket.destroy();
  return why;
}

const WORDS: Readonly<Record<string, string>> = {
  ENOTFOUND: "its host name does not exist",
  EAI_AGAIN: "its host name could not be looked up",
  ECONNREFUSED: "nothing listens at its port",
  ERR_SSL_WRONG_VERSION_NUMBER: "its port does not speak TLS; use http:// instead of https://",
  EPROTO: "its port does not speak TLS; use http:// instead of https://",
};
