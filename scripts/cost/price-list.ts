/**
 * Cloudflare's prices for Workers on the Paid plan, USD, without what the plan includes: the next call costs this.
 * Change the date with the figures.
 */
export const PRICE_LIST = {
  readOn: "2026-11-22",
  sources: [
    "https://developers.cloudflare.com/workers/platform/pricing/",
    "https://developers.cloudflare.com/durable-objects/platform/pricing/",
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
  /** Rows read, per million: left out below, a call reads a few. */
  rowsRead: 0.001,
  /** Storage of objects, per GB and month. */
  storedGbMonths: 0.2,
} as const;
