/** Where traces are exported to. Messages never quote a value: it may be a secret. */
import { resolveHeaders } from "../../providers/config/credentials.ts";

/** The collector's address for traces, and the headers of each request. Holds secrets: never log or return it. */
export type OtlpTarget = { url: string; headers: Record<string, string>; encoding: OtlpEncoding };

/** How requests are written. Some collectors read no JSON. */
export type OtlpEncoding = "json" | "protobuf";

/** A target, null = traces are not exported; or which variable is wrong, and how. */
export type ParsedOtlp = { ok: true; target: OtlpTarget | null } | { ok: false; variable: string; message: string };

const TRACES_PATH = "/v1/traces";

/** The values of OTLP_PROTOCOL, as OpenTelemetry names them. */
const ENCODINGS: ReadonlyMap<string, OtlpEncoding> = new Map([
  ["http/json", "json"],
  ["http/protobuf", "protobuf"],
]);

/** The texts of the variables; null = not set. */
export type OtlpTexts = { endpoint: string | null; headers: string | null; protocol?: string | null };

/** Reads OTLP_ENDPOINT, OTLP_HEADERS and OTLP_PROTOCOL; `secret:NAME` as a header's value reads `vars[NAME]`. */
export function parseOtlp({ endpoint, headers, protocol }: OtlpTexts, vars: Record<string, unknown>): ParsedOtlp {
  if (endpoint === null) return { ok: true, target: null };
  const encoding = ENCODINGS.get(protocol ?? "http/json");
  if (encoding === undefined) {
    return { ok: false, variable: "OTLP_PROTOCOL", message: `must be ${[...ENCODINGS.keys()].join(" or ")}` };
  }
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
  return { ok: true, target: { url: url.href, headers: resolved.value, encoding } };
}
