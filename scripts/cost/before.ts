/**
 * The counted operations at 87c4c54, whose objects are those of 0f25735: lanes and long polls keep objects awake, calls
 * send heartbeats, each settlement writes a row of the log. Counted by the same tests as the present bounds. What runs could
 * not do then is absent.
 */
import type { WayIn } from "../../test/objects/cost/bounds.ts";
import type { Counted } from "../../test/objects/cost/counted.ts";

export const BEFORE: Partial<Record<WayIn, Counted>> = {
  "/batch, width 8": { rows: 3.136, requests: 1.925, commits: 1.13, alarms: 0.084, messages: 0, awakeS: 7.568 },
  "/batch, width 64": { rows: 3.073, requests: 1.458, commits: 1.058, alarms: 0.011, messages: 0, awakeS: 3.811 },
  "/batch, width 512": { rows: 3.153, requests: 1.559, commits: 1.049, alarms: 0.001, messages: 0, awakeS: 3.502 },
  // Six calls to an object then, streamed or not.
  "/batch, width 64, no streams": {
    rows: 3.073,
    requests: 1.458,
    commits: 1.058,
    alarms: 0.011,
    messages: 0,
    awakeS: 3.811,
  },
  "/batch as lines, width 64": {
    rows: 3.073,
    requests: 2.458,
    commits: 1.059,
    alarms: 0.011,
    messages: 0,
    awakeS: 3.825,
  },
  "/batch, respond-async, width 64": {
    rows: 3.073,
    requests: 1.413,
    commits: 1.056,
    alarms: 0.011,
    messages: 0,
    awakeS: 3.456,
  },
  "/query": { rows: 4.678, requests: 16.333, commits: 3.678, alarms: 0.678, messages: 0, awakeS: 0.271 },
  "/query with an Idempotency-Key": {
    rows: 9.678,
    requests: 10,
    commits: 4.678,
    alarms: 0.678,
    messages: 0,
    awakeS: 40.139,
  },
  "/v1/chat/completions": { rows: 4.678, requests: 16.333, commits: 3.678, alarms: 0.678, messages: 0, awakeS: 0.271 },
  "/v1/chat/completions, streamed": {
    rows: 4.678,
    requests: 16.333,
    commits: 3.678,
    alarms: 0.678,
    messages: 0,
    awakeS: 0.271,
  },
  "/v1/batches, width 64": { rows: 3.103, requests: 1.649, commits: 1.069, alarms: 0.012, messages: 0, awakeS: 4.204 },
  "/tool_call": { rows: 1.679, requests: 15.333, commits: 1.679, alarms: 0.679, messages: 0, awakeS: 20.258 },
  "POST /runs": { rows: 15, requests: 2, commits: 2, alarms: 0, messages: 0, awakeS: 0.026 },
};
