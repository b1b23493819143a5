/** What Cloudflare's free plan means for a gateway. The guide's table has the same figures. */

/** The limits of the free plan that a gateway meets first, as sentences for the operator. Read on 2026-11-24. */
export const FREE_PLAN_NOTES: readonly string[] = [
  `A request has 10 ms of CPU time. Set "aggregate": "json" for each upstream, and send at most 10 calls in one batch.`,
  "The first request of a new isolate takes more than 10 ms, and Cloudflare forgives that only rarely.",
  "A day has 100,000 requests, and 100,000 rows written by objects, about 45,000 calls.",
  "Files and /v1/batches are not available, because they need R2.",
];
