/** Lets pages of configured origins call the gateway from a browser. Off where no origin is configured. */
import type { Context, Next } from "hono";
import { cors } from "hono/cors";
import { isAllowedOrigin } from "./auth/origins.ts";
import type { AppEnv } from "./context.ts";
import { configOf } from "../env.ts";
import { TRACE_HEADER } from "../trace-context.ts";

/** What a page may read of an answer beside its body: SDKs show these to their users. */
const EXPOSED = [
  "x-request-id",
  "request-id",
  "x-fanout-run",
  "x-fanout-budget-remaining-usd",
  TRACE_HEADER,
  "x-fanout-capped-by",
  "x-fanout-upstream",
  "x-fanout-replayed",
  "x-fanout-attempts",
  "x-fanout-charged-usd",
  "x-should-retry",
  "retry-after",
  "retry-after-ms",
  "location",
  "idempotent-replayed",
  "openai-processing-ms",
  "openai-version",
  ...["requests", "tokens"].flatMap((kind) =>
    ["limit", "remaining", "reset"].map((figure) => `x-ratelimit-${figure}-${kind}`),
  ),
];

/** How long a browser may cache a preflight answer, seconds: the most that Chromium allows. */
const MAX_AGE_S = 7_200;

/** No credentials mode: a page sends its run token in a header of its own, never a cookie. */
export function crossOrigin(c: Context<AppEnv>, next: Next): Promise<Response | void> {
  const parsed = configOf(c.env);
  const origins = parsed.ok ? parsed.config.corsOrigins : [];
  if (origins.length === 0 || c.req.header("origin") === undefined) return next();
  const handler = cors({
    origin: (origin) => originOf(origins, origin),
    // A browser names each header, and SDKs send many: every header that it names is allowed.
    allowMethods: ["GET", "HEAD", "POST", "PATCH", "DELETE"],
    exposeHeaders: EXPOSED,
    maxAge: MAX_AGE_S,
  });
  return handler(c, next);
}

function originOf(origins: readonly string[], origin: string): string | null {
  return !isAllowedOrigin(origins, origin) ? null : origins.includes("*") ? "*" : origin;
}
