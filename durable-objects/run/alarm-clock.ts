/** When a run's alarm fires: each of its jobs says when it is due. It knows no job by name, and no platform. */
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { alarmMs } from "../alarm-time.ts";

/**
 * What an alarm that is near already means for a job that is due before it.
 * - `late`: the job waits for that alarm, so it may be as late as a lease's term. Most turns need not look at it.
 * - `punctual`: the alarm is set anew.
 * - `pressing`: the same; and as long as the job has a time at all, every other job is punctual, too.
 */
export type Patience = "late" | "punctual" | "pressing";

/** When one job of a run's alarm is due. */
export type Due<Run> = {
  readonly patience: Patience;
  /** When the alarm is to fire for it, epoch ms; null = never. */
  readonly dueAtMs: (run: Run, nowMs: number) => number | null;
};

/** What of the alarm itself decides. */
export type AlarmTimes = {
  /** What the alarm is set to; null = it is not set. */
  armedMs: number | null;
  /** A time by which the alarm was requested whatever the jobs say. */
  requestedMs: number | null;
  /** Jobs failed: nothing but a request makes the alarm fire before this. */
  retryAtMs: number | null;
};

/** The time to set the alarm to; null = leave it as it is. The only place where the next alarm is computed. */
export function nextAlarmMs<Run>(
  jobs: readonly Due<Run>[],
  run: Run,
  { armedMs, requestedMs, retryAtMs }: AlarmTimes,
  nowMs: number,
): number | null {
  // Every new lease outlasts an alarm that is this near, so the leases need not be visited. Most turns return here.
  const isNear = armedMs !== null && armedMs <= nowMs + LEASE_TTL_MS;
  if (requestedMs === null && isNear && mayStay(jobs, run, armedMs, nowMs)) return null;
  const firstMs = Math.min(...jobs.map((job) => job.dueAtMs(run, nowMs) ?? Infinity));
  const byJobs = Math.max(firstMs, retryAtMs ?? -Infinity);
  const dueAtMs = alarmMs(Math.min(byJobs, requestedMs ?? Infinity), nowMs);
  // An alarm that is set too early stays: setting it costs a row, and when it fires it is set anew.
  return dueAtMs < (armedMs ?? Infinity) ? dueAtMs : null;
}

/** Whether no job needs more than the near alarm that is set. */
function mayStay<Run>(jobs: readonly Due<Run>[], run: Run, armedMs: number, nowMs: number): boolean {
  return jobs.every((job) => {
    if (job.patience === "late") return true;
    const dueAtMs = job.dueAtMs(run, nowMs);
    return dueAtMs === null || (job.patience === "punctual" && armedMs <= dueAtMs);
  });
}

/** Whether a job that nothing may delay is due now. */
export function isPressing<Run>(jobs: readonly Due<Run>[], run: Run, nowMs: number): boolean {
  return jobs.some((job) => job.patience === "pressing" && (job.dueAtMs(run, nowMs) ?? Infinity) <= nowMs);
}

/** What the alarm of one instance is set to. */
export class AlarmClock<Run> {
  readonly #jobs: readonly Due<Run>[];
  readonly #set: (atMs: number) => void;
  #armedMs: number | null = null;
  #retryAtMs: number | null = null;

  /** @param set Sets the platform's alarm. */
  constructor(jobs: readonly Due<Run>[], set: (atMs: number) => void) {
    this.#jobs = jobs;
    this.#set = set;
  }

  /** The alarm that an earlier instance has set, so that this one does not set it again; null = none. */
  restored(armedMs: number | null): void {
    this.#armedMs ??= armedMs;
  }

  /**
   * Sets the alarm, if it must fire earlier than it is set to.
   * @param requestedMs A time by which it must fire whatever the jobs say; null = none.
   */
  arm(run: Run, nowMs: number, requestedMs: number | null = null): void {
    const times = { armedMs: this.#armedMs, requestedMs, retryAtMs: this.#retryAtMs };
    const atMs = nextAlarmMs(this.#jobs, run, times, nowMs);
    if (atMs === null) return;
    this.#armedMs = atMs;
    this.#set(atMs);
  }

  /** The alarm fires: it is not set any more, and its jobs are tried again. */
  fired(): void {
    this.#armedMs = null;
    this.#retryAtMs = null;
  }

  /** Jobs have failed. What was set meanwhile is forgotten: it may fire at once, and the retry replaces it. */
  failed(retryAtMs: number): void {
    this.#armedMs = null;
    this.#retryAtMs = retryAtMs;
  }
}
