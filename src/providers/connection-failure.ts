/**
 * Classifies requests that got no answer. Node names the system call's error. workerd (1.20261102) does not: a refused
 * connection, a reset before the request and one after it all report "Network connection lost.", and failed look-ups and
 * TLS handshakes report "internal error". So on Workers every such failure is unknown and stays charged, unless no connection
 * could be made before anything was sent (reached.ts).
 */
import type { Classification } from "../call.ts";
import type { Reason } from "../errors.ts";
import { failed } from "./classify.ts";
import type { Upstream } from "./config/types.ts";

/** Codes that prove that no connection was made, so no request can have reached the upstream. */
const NEVER_CONNECTED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Classifies what `fetch` threw before it had headers. The thrown text is not shown: some runtimes quote headers in it. */
export function connectionFailure(upstream: Upstream, error: unknown): Classification {
  const code = systemCode(error);
  if (code !== null && NEVER_CONNECTED.has(code)) return unreachable(upstream, code);
  const named = code === null ? "" : ` (${code})`;
  const message = `the connection to ${upstream.name} was refused, or lost before an answer came${named}; if none of its calls is answered, check its base_url`;
  return failed("unknown", unanswered(upstream, message));
}

/** No connection can be made, so nothing was sent: the attempt costs nothing, and another one at once would fail, too. */
export function unreachable(upstream: Upstream, code: string | null = null): Classification {
  const named = code === null ? "" : ` (${code})`;
  const message = `no connection to ${upstream.name} can be made${named}: check the host, the port and the protocol of its base_url, and whether it runs`;
  return { ...failed("transient", unanswered(upstream, message)), unreachable: true };
}

function unanswered({ name }: Upstream, message: string): Reason {
  return { reason: "upstream_error", upstream: name, status: null, message, retryable: true };
}

/** The error's own code or its cause's, where fetch wraps the socket's error. */
function systemCode(error: unknown): string | null {
  for (const candidate of [error, error instanceof Error ? error.cause : null]) {
    if (typeof candidate !== "object" || candidate === null || !("code" in candidate)) continue;
    const { code } = candidate;
    if (typeof code === "string" && /^[A-Z_]{3,40}$/.test(code)) return code;
  }
  return null;
}
