/** The most that a call by each way in may cost, in counted operations. The tests count; `npm run cost` prices. */
import type { Bound } from "./counted.ts";

const batch = { callsPerRequest: 1_000, workerCpuMs: 2, storedBytes: 3_000 };
const single = { callsPerRequest: 1, workerCpuMs: 3, storedBytes: 500 };

export const BOUNDS = {
  "/batch, width 8": { rows: 2.25, requests: 1.95, commits: 1.2, alarms: 0.1, messages: 0, awakeS: 5.5, ...batch },
  "/batch, width 64": { rows: 2.15, requests: 1.5, commits: 1.1, alarms: 0.02, messages: 0, awakeS: 3.8, ...batch },
  "/batch, width 512": { rows: 2.25, requests: 1.65, commits: 1.1, alarms: 0.01, messages: 0, awakeS: 3.7, ...batch },
  "/batch as lines, width 64": {
    rows: 2.15,
    requests: 2.5,
    commits: 1.1,
    alarms: 0.02,
    messages: 0.25,
    awakeS: 3.85,
    ...batch,
  },
  "/batch, respond-async, width 64": {
    rows: 2.15,
    requests: 1.5,
    commits: 1.1,
    alarms: 0.02,
    messages: 0,
    awakeS: 3.7,
    ...batch,
  },
  "/query": { rows: 3.7, requests: 3, commits: 4, alarms: 1, messages: 0, awakeS: 0.13, ...single },
  "/query with an Idempotency-Key": {
    rows: 8.8,
    requests: 12,
    commits: 5,
    alarms: 1,
    messages: 0,
    awakeS: 20.5,
    ...single,
  },
  "/v1/chat/completions": { rows: 3.7, requests: 3, commits: 4, alarms: 1, messages: 0, awakeS: 0.13, ...single },
  "/v1/chat/completions, streamed": {
    rows: 3.7,
    requests: 3,
    commits: 4,
    alarms: 1,
    messages: 0,
    awakeS: 0.13,
    ...single,
  },
  "/v1/batches, width 64": {
    rows: 2.25,
    requests: 1.8,
    commits: 1.15,
    alarms: 0.02,
    messages: 0,
    awakeS: 4.5,
    ...batch,
  },
  "/tool_call": { rows: 2, requests: 2, commits: 2, alarms: 1, messages: 0, awakeS: 0.13, ...single },
  "POST /runs": { rows: 20, requests: 2, commits: 3, alarms: 0, messages: 0, awakeS: 0.1, ...single },
} as const satisfies Record<string, Bound>;

export type WayIn = keyof typeof BOUNDS;
