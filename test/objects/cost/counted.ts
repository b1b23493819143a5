/**
 * The counted operations of a call of 20 seconds. No test waits for that long: a call waits at a latch of the upstream,
 * and what 20 seconds of waiting cost follows from what is found there then. An object that a pending request, a timer
 * or a fetch holds in memory is awake for all of them; heartbeats, long polls and alarms come as often as their delays say.
 * A stream that the gateway requests has its headers at once, as from a model whose first token is early. An executor then holds
 * as many calls as it may; so it does while headers come within .9 s of a call of 20 s (test/unit/executors/paces.test.ts), and
 * such models need the same executors. An upstream that answers with JSON has its headers with its answer: that is a way in
 * of its own.
 * No imports of the platform: `npm run cost` reads this in Node.
 */

/** Duration of a call, ms. */
export const CALL_MS = 20_000;
/** Calls of the batch whose opening and end are spread over its calls. */
export const BATCH_CALLS = 1_000;
/**
 * How long an event keeps an object awake, ms: a request, an alarm or a message with its commit. Reported, not measured:
 * an output gate opens after 5 to 13 ms in production. Probe 6 measures it.
 */
export const EVENT_MS = 13;

/** Operations per call. */
export type Counted = {
  /** Rows written, the log's among them; alarms set count as rows. */
  rows: number;
  /** Requests to objects: RPCs, and the requests that open sockets. */
  requests: number;
  /** Writes that become durable together. */
  commits: number;
  /** Alarms that fire. */
  alarms: number;
  /** Socket messages to objects. */
  messages: number;
  /** Time in which objects are awake, seconds; each object counts. */
  awakeS: number;
};

/** How a way in costs: `calls` per request of the client, and its counted operations. */
export type Bound = Counted & {
  /** Calls per request of a client. */
  callsPerRequest: number;
  /** CPU time of Workers per call, ms; assumed, from the benchmarks on one machine. */
  workerCpuMs: number;
  /** Bytes that stay stored per call for a day. */
  storedBytes: number;
};
