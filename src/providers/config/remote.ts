/** What upstreams have that are reached over HTTP: their base URL, their keys and their headers. */
import type * as z from "zod";
import { authHeaderNames } from "./auth.ts";
import { resolveHeaders } from "./credentials.ts";
import type { remoteFields } from "./fields.ts";
import { resolveKeys } from "./keys.ts";
import { wrong, type ParsedUpstreams } from "./parsed.ts";
import type { Upstream } from "./types.ts";

type Fields = z.infer<z.ZodObject<ReturnType<typeof remoteFields>>>;

type Remote = Pick<Upstream, "apiKey" | "auth" | "keys" | "query" | "headers" | "streamUsage" | "traces">;

/** Resolves keys and headers. `keyHeaders`: headers that the gateway sets itself if there is a key. */
export function remoteOf(
  name: string,
  fields: Fields,
  { vars, keyHeaders }: { vars: Record<string, unknown>; keyHeaders: readonly string[] },
): { ok: true; remote: Remote } | (ParsedUpstreams & { ok: false }) {
  const keys = resolveKeys(fields, vars);
  if (!keys.ok) return wrong([name, ...keys.field], keys.message);
  const headers = resolveHeaders(
    fields.headers,
    vars,
    keys.value.apiKey === null ? [] : authHeaderNames(fields.auth, keyHeaders),
  );
  if (!headers.ok) return wrong([name, "headers", ...headers.field], headers.message);
  const query = new URLSearchParams(fields.query).toString();
  return {
    ok: true,
    remote: {
      ...keys.value,
      ...(fields.auth === undefined ? {} : { auth: fields.auth }),
      ...(query === "" ? {} : { query }),
      headers: headers.value,
      streamUsage: fields.stream_usage,
      ...(fields.traceparent ? { traces: "client" } : {}),
    },
  };
}
