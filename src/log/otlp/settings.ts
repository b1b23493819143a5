/** Where traces are exported to. Messages never quote a value: it may be a secret. */
import { resolveHeaders } from "../../providers/config/credentials.ts";

/** The collector's address for traces, and the headers of each request. Holds secrets: never log or return it. */
export type OtlpTarget = { url: string; headers: Record<string, string> };

/** A target, null = traces are not exported; or which variable is wrong, and how. */
export type ParsedOtlp = { ok: true; target: OtlpTarget | null } | { ok: false; variable: string; message: string };

const TRACES_PATH = "/v1/traces";

/** Reads OTLP_ENDPOINT and OTLP_HEADERS; `secret:NAME` as a header's value reads `vars[NAME]`. */
export function parseOtlp(endpoint: string | null, headers: string | null, vars: Record<string, unknown>): ParsedOtlp {
  if (endpoint === null) return { ok: true, target: null };
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    const message = "must be an http:// or https:// address without a name and password";
    return { ok: false, variable: "OTLP_ENDPOINT", message };
  }
  if (url.pathname === "/") url.pathname = TRACES_PATH;
  const wrong = (message: string): ParsedOtlp => ({ ok: false, variable: "OTLP_HEADERS", message });
  const configured = new Map<string, string>();
  for (const part of (headers ?? "").split(",")) {
    if (part.trim() === "") continue;
    const at = part.indexOf("=");
    if (at === -1) return wrong("must be name=value, separated by commas");
    configured.set(part.slice(0, at).trim(), part.slice(at + 1).trim());
  }
  const resolved = resolveHeaders(Object.fromEntries(configured), vars, []);
  if (!resolved.ok) return wrong(`${resolved.field.join(".")} ${resolved.message}`);
  return { ok: true, target: { url: url.href, headers: resolved.value } };
}
