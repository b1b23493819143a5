/** What upstreams have that are reached over HTTP: their base URL, their keys and their headers. */
import type * as z from "zod";
import { resolveHeaders } from "./credentials.ts";
import type { remoteFields } from "./fields.ts";
import { resolveKeys } from "./keys.ts";
import { wrong, type ParsedUpstreams } from "./parsed.ts";
import type { Upstream } from "./types.ts";

type Fields = z.infer<z.ZodObject<typeof remoteFields>>;

type Remote = Pick<Upstream, "apiKey" | "keys" | "headers" | "streamUsage" | "traces">;

/** Resolves keys and headers. `keyHeaders`: headers that the gateway sets itself if there is a key. */
export function remoteOf(
  name: string,
  fields: Fields,
  { vars, keyHeaders }: { vars: Record<string, unknown>; keyHeaders: readonly string[] },
): { ok: true; remote: Remote } | (ParsedUpstreams & { ok: false }) {
  const keys = resolveKeys(fields, vars);
  if (!keys.ok) return wrong([name, ...keys.field], keys.message);
  const headers = resolveHeaders(fields.headers, vars, keys.value.apiKey === null ? [] : keyHeaders);
  if (!headers.ok) return wrong([name, "headers", ...headers.field], headers.message);
  return {
    ok: true,
    remote: {
      ...keys.value,
      headers: headers.value,
      streamUsage: fields.stream_usage,
      ...(fields.traceparent ? { traces: "client" } : {}),
    },
  };
}

/** A base URL as it is stored. */
export function withoutEndSlash(url: string): string {
  return new URL(url).href.replace(/\/+$/, "");
}
