/**
 * The most that a call by each way in may cost, in counted operations. The tests count; `npm run cost` prices. Set close to
 * what is counted: change a bound with the code that makes a call cheaper.
 */
import type { Bound, Counted } from "./counted.ts";

const batch = (counted: Counted): Bound => ({ callsPerRequest: 1_000, workerCpuMs: 2, storedBytes: 3_000, ...counted });
const single = (counted: Counted): Bound => ({ callsPerRequest: 1, workerCpuMs: 2, storedBytes: 500, ...counted });

/** A call that nobody waits for in an object: its permit, its socket, its settlement. */
const lone = single({ rows: 2.1, requests: 3, commits: 2.1, alarms: 0.04, messages: 0, awakeS: 0.13 });

export const BOUNDS = {
  "/batch, width 8": batch({ rows: 2.15, requests: 1.25, commits: 1.15, alarms: 0.1, messages: 0.12, awakeS: 0.1 }),
  "/batch, width 64": batch({ rows: 2.09, requests: 1.15, commits: 1.05, alarms: 0.02, messages: 0.05, awakeS: 0.1 }),
  // Seven lanes beside the Worker; the first calls of an executor are claimed by sixes.
  "/batch, width 512": batch({ rows: 2.2, requests: 1.5, commits: 1.1, alarms: 0.01, messages: 0.05, awakeS: 0.42 }),
  "/batch, width 64, no streams": batch({
    rows: 2.1,
    requests: 1.4,
    commits: 1.05,
    alarms: 0.02,
    messages: 0.2,
    awakeS: 3.3,
  }),
  "/batch as lines, width 64": batch({
    rows: 2.09,
    requests: 1.2,
    commits: 1.05,
    alarms: 0.02,
    messages: 0.1,
    awakeS: 0.1,
  }),
  "/batch, respond-async, width 64": batch({
    rows: 2.09,
    requests: 1.15,
    commits: 1.05,
    alarms: 0.02,
    messages: 0.05,
    awakeS: 0.42,
  }),
  "/query": lone,
  "/query with an Idempotency-Key": single({
    // The row of the shard is written after CARRIED_SHARDS_MAX calls: the count has none.
    rows: 2.2,
    requests: 3.8,
    commits: 2.1,
    alarms: 0.04,
    messages: 1.7,
    awakeS: 0.12,
  }),
  // One request to one object, which waits for nothing: it has the answer in the turn that takes the call in.
  "/query, replayed": single({ rows: 2.1, requests: 1, commits: 1, alarms: 0, messages: 0, awakeS: 0.02 }),
  "/query with an Idempotency-Key, replayed": single({
    rows: 2.1,
    requests: 1,
    commits: 1,
    alarms: 0,
    messages: 0,
    awakeS: 0.02,
  }),
  "/v1/chat/completions": lone,
  "/v1/chat/completions, streamed": lone,
  "/v1/batches, width 64": batch({
    rows: 2.13,
    requests: 1.2,
    commits: 1.08,
    alarms: 0.04,
    messages: 0.05,
    awakeS: 0.45,
  }),
  "/tool_call": single({ rows: 1.1, requests: 3, commits: 1.1, alarms: 0.04, messages: 0, awakeS: 0.13 }),
  "POST /runs": single({ rows: 5, requests: 2, commits: 2, alarms: 0, messages: 0, awakeS: 0.1 }),
} as const satisfies Record<string, Bound>;

export type WayIn = keyof typeof BOUNDS;
