/** Lines of a run's log, written by hand as the gateway serves them. */

export const GROUP = "pg-1763712000000-k3j9x2";
const START_MS = Date.parse("2026-11-21T13:00:00.000Z");

/** Epoch ms of a moment of the history. */
export const at = (ms: number): number => START_MS + ms;

/** ISO time of a moment of the history. */
export const iso = (ms: number): string => new Date(at(ms)).toISOString();

type Facts = Record<string, unknown>;

/** Numbers its lines from 1. `group` and `ms` are the envelope's; all else are the event's facts. */
export class RunLogWriter {
  readonly lines: string[] = [];

  add(type: string, { ms = 0, group = null, ...facts }: Facts & { ms?: number; group?: string | null } = {}): string {
    const envelope = {
      seq: this.lines.length + 1,
      ts: iso(ms),
      run_id: "run_1",
      parent_run_id: null,
      parallel_group_id: group,
      depth: 0,
      step: null,
      event_type: type,
    };
    const line = JSON.stringify({ ...envelope, ...facts });
    this.lines.push(line);
    return line;
  }

  opened(name: string | null = "first", usd: number | null = 0.5): void {
    const limits = { usd, calls: null, prompt_tokens: null, completion_tokens: null };
    this.add("run_opened", { name, limits, max_parallel: 8 });
  }

  groupStarted(count: number, ms = 0, group = GROUP): void {
    this.add("group_started", { ms, group, count, effective_parallel: 8 });
  }

  started(call: Facts, { ms = 0, group = GROUP as string | null, attempt = 1 } = {}): void {
    const reserved = { usd: 0.001, prompt_tokens: 10, completion_tokens: 100 };
    const facts = { ...name(call), attempt, upstream: "sim", model: "sim/echo", queued_ms: 0, reserved };
    this.add("attempt_started", { ms, group, ...facts });
  }

  ended(call: Facts, { ms = 0, group = GROUP as string | null, attempt = 1, latencyMs = 1_000, code = "" } = {}): void {
    const outcome = code === "" ? "success" : "transient";
    const facts = { ...name(call), attempt, upstream: "sim", model: "sim/echo", outcome, code: code || null };
    const charged = { usd: code === "" ? 0.0004 : 0, prompt_tokens: 10, completion_tokens: 10 };
    this.add("attempt_ended", { ms, group, ...facts, latency_ms: latencyMs, estimated: false, charged });
  }

  /** A call that took `tookMs`, ending at `ms`; one with a `code` failed. */
  completed(
    call: Facts,
    { ms = 0, group = GROUP as string | null, attempts = 1, tookMs = 1_000, code = "", message = "" } = {},
  ): void {
    const failed = { status: "failed", hasError: true, code, message, finish_reason: null };
    const ok = { status: "completed", hasError: false, code: null, message: null, finish_reason: "stop" };
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20, cost: code === "" ? 0.0004 : 0 };
    const timestamps = { llm_call_start: iso(ms - tookMs), llm_call_end: iso(ms) };
    const outcome = code === "" ? ok : failed;
    this.add("slot_completed", {
      ...{ ms, group, ...name(call), attempts, ...outcome },
      ...{ model: "sim/echo", usage, timestamps },
    });
  }

  groupCompleted(counts: { completed: number; failed: number; cancelled: number }, facts: Facts = {}): void {
    const count = counts.completed + counts.failed + counts.cancelled;
    const metrics = { execution_ms: 1_230, cost: 0.0012, sequential_ms: 7_900, speedup: 6.42, peak_parallel: 8 };
    this.add("group_completed", { group: GROUP, count, status: "completed", ...metrics, ...counts, ...facts });
  }
}

function name(call: Facts): Facts {
  return { index: null, call_id: null, ...call };
}
