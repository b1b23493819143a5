/**
 * The configuration for Cloudflare's free plan, made from `wrangler.toml`. That plan refuses `[limits]`, and R2 and Workflows
 * need an account with a payment method.
 */
import { z } from "zod";

/** What the free plan refuses, or what needs a payment method. */
const LEFT_OUT = ["limits", "r2_buckets", "workflows"] as const;

/** Fetches to other hosts that one request may make on the free plan, documented. */
const FREE_SUBREQUESTS_MAX = 50;

/** The limits of the free plan that a gateway meets first, as sentences for the operator. Read on 2026-11-23. */
export const FREE_PLAN_NOTES: readonly string[] = [
  `A request can make at most ${FREE_SUBREQUESTS_MAX} fetches: send at most 40 calls in one batch, which leaves room for retries.`,
  "A request has 10 ms of CPU time: send small batches, and do not relay long streams that must be edited.",
  "A day has 100,000 requests, and 100,000 rows written by objects, about 45,000 calls.",
  "Files and /v1/batches are not available, because they need R2.",
];

const wranglerToml = z.record(z.string(), z.unknown());

/** The parsed `wrangler.toml` without what the free plan does not have. */
export function withoutPaidFeatures(config: unknown): Record<string, unknown> {
  const entries = Object.entries(wranglerToml.parse(config));
  return Object.fromEntries(entries.filter(([key]) => !LEFT_OUT.some((name) => name === key)));
}
