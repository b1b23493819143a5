/**
 * Classifies requests that got no answer. Node names the system call's error. workerd (1.20261102) does not: a refused
 * connection, a reset before the request and one after it all report "Network connection lost.", and failed look-ups and
 * TLS handshakes report "internal error". So on Workers every such failure is unknown and stays charged, unless the attempt
 * was stopped before anything was sent.
 */
import type { Classification } from "../call.ts";
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
  const never = code !== null && NEVER_CONNECTED.has(code);
  const what = never ? "could not be reached" : "lost the connection before it answered";
  const message = `${upstream.name} ${what}${code === null ? "" : ` (${code})`}`;
  return failed(never ? "transient" : "unknown", {
    reason: "upstream_error",
    upstream: upstream.name,
    status: null,
    message,
    retryable: true,
  });
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
