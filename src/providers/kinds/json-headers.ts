/** The headers of an attempt that asks for JSON, with the upstream's key: never log or return them. */
import { authHeaders } from "../config/auth.ts";
import type { Upstream } from "../config/types.ts";
import type { Kind } from "./kind.ts";

export function jsonHeaders(upstream: Upstream, kind: Pick<Kind, "headers" | "keyHeaders">): Record<string, string> {
  return {
    "content-type": "application/json",
    accept: "application/json",
    "user-agent": "fanout",
    ...kind.headers,
    ...upstream.headers,
    ...authHeaders(upstream, kind.keyHeaders),
  };
}
