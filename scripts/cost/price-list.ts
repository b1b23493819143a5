/**
 * Cloudflare's prices for Workers on the Paid plan, USD, without what the plan includes: the next call costs this.
 * Change the date with the figures.
 */
export const PRICE_LIST = {
  readOn: "2026-11-22",
  sources: [
    "https://developers.cloudflare.com/workers/platform/pricing/",
    "https://developers.cloudflare.com/durable-objects/platform/pricing/",
    "https://developers.cloudflare.com/workflows/reference/pricing/",
    "https://developers.cloudflare.com/r2/pricing/",
  ],
  /** Requests of clients, per million. What a Worker waits for is free. */
  workerRequests: 0.3,
  /** CPU time of Workers, per million ms. */
  workerCpuMs: 0.02,
  /** Requests to objects and alarms that fire, per million. */
  objectRequests: 0.15,
  /** Socket messages to an object that count as one request; those from it are free. */
  messagesPerRequest: 20,
  /** Time in which an object is awake, per million GB-s. */
  objectGbSeconds: 12.5,
  /** Memory that an object is billed for, GB. It does not depend on what the object uses. */
  objectGb: 0.128,
  /** Rows written, per million: deletes, index rows and alarms set count. */
  rowsWritten: 1,
  /** Rows read, per million: left out of a call, which reads a few. An object reads rows when it wakes. */
  rowsRead: 0.001,
  /** Storage of objects, per GB and month. */
  storedGbMonths: 0.2,
  /** Workflow instances, per million, as requests of Workers; waiting is free, and CPU time costs that of Workers. */
  workflowRequests: 0.3,
  /** Steps of instances, per million: no price is listed for one, instances, CPU time and storage are billed. */
  workflowSteps: 0,
  /** Writes to R2 (class A), per million: puts, parts, lists. Deletes are free. */
  r2Writes: 4.5,
  /** Reads from R2 (class B), per million. */
  r2Reads: 0.36,
  /** Storage in R2, per GB and month. */
  r2GbMonths: 0.015,
} as const;
