/** Lines of a log for the model of the run page, with the fields that it reads. */
import { parseLine, type LogLine } from "../../../ui/model/line.ts";
import { RunState } from "../../../ui/model/run-state.ts";

export const GROUP = "pg-1763712000000-k3j9x2";

/** A log being written: each line has the next number. */
export class Lines {
  readonly all: LogLine[] = [];

  add(atMs: number, type: string, fields: object = {}, group: string | null = GROUP): this {
    const ts = new Date(atMs).toISOString();
    const seq = this.all.length + 1;
    const line = parseLine(JSON.stringify({ seq, ts, event_type: type, parallel_group_id: group, ...fields }));
    if (line === null) throw new Error("not a line of a log");
    this.all.push(line);
    return this;
  }

  started(atMs: number, index: number, attempt = 1, reservedUsd = 0.1): this {
    const call = { index, call_id: null, attempt, upstream: "up", model: "m" };
    return this.add(atMs, "attempt_started", { ...call, queued_ms: 5, reserved: { usd: reservedUsd } });
  }

  ended(
    atMs: number,
    index: number,
    { outcome = "success", usd = 0.02, attempt = 1, estimated = false, latencyMs = 0 } = {},
  ): this {
    const call = { index, call_id: null, attempt, upstream: "up", model: "m" };
    return this.add(atMs, "attempt_ended", { ...call, outcome, estimated, latency_ms: latencyMs, charged: { usd } });
  }

  completed(atMs: number, index: number, status = "completed", code: string | null = null): this {
    const result = {
      status,
      code,
      message: code === null ? null : `why ${index}`,
      model: "m",
      usage: { cost: 0.02 },
      timestamps: { llm_call_start: "" },
    };
    return this.add(atMs, "slot_completed", { index, call_id: null, ...result });
  }

  skipped(atMs: number, index: number): this {
    const why = { code: "dependency_failed", message: `why ${index}` };
    return this.add(atMs, "slot_skipped", { index, call_id: null, ...why });
  }
}

/** What the page knows once it has read the lines. */
export function stateOf(lines: Lines): RunState {
  const state = new RunState();
  for (const line of lines.all) state.apply(line);
  return state;
}
