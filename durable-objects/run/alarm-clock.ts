/** When a run's alarm fires: what of the run decides, and what the alarm is set to. It knows no platform. */
import { LEASE_TTL_MS, LOST_CALL_MS, NOTIFY_RETRY_MS } from "../../src/limits.ts";
import { alarmMs } from "../alarm-time.ts";

/** What of a run decides when its alarm fires; times in epoch ms, null = never. Getters, because some visit every attempt. */
export type AlarmState = {
  /** When the run expires; null once it has ended. */
  readonly expiresAtMs: number | null;
  /** Whether groups are open or attempts in flight: a lease may expire, or a lane be missing. */
  readonly hasWork: boolean;
  /** Whether groups are open: an instance that the alarm wakes may have to miss the executors of these. */
  readonly hasGroups: boolean;
  /** When the first lease in flight expires by itself. */
  readonly leaseEndMs: number | null;
  /** When the next retry is due, deadline passes or cool-down ends, if no timer is set for it. */
  readonly readyAtMs: number | null;
  /** When the first group is to be cancelled, or plan to be closed, because its client is gone. */
  readonly lapseAtMs: number | null;
  /** Whether only single calls are in flight whose loss nobody waits for: a turn would find it, too. */
  readonly mayLookLate: boolean;
  /** When the first child whose opening was not confirmed is to be cancelled. */
  readonly childDueMs: number | null;
  /** When the first staged upload is to be dropped. */
  readonly uploadDueMs: number | null;
  /** When the first tool permit expires; null until the run has ended: before, the next tool call frees it. */
  readonly toolPermitEndMs: number | null;
  /** Whether relatives, lanes with attempts to abort, or objects that feed providers' batches must be notified. */
  readonly mustCallOthers: boolean;
  readonly isReservationInDoubt: boolean;
  /** In how many ms the log is to be exported; null = it is, or never will be. */
  readonly exportDelayMs: number | null;
  /** In how many ms the operator's webhook is to be notified; null = of nothing. */
  readonly webhookDelayMs: number | null;
  readonly deleteAtMs: number | null;
  /** Whether the run has counted something that a gate may not know. An exchange with that gate reports it before the alarm does. */
  readonly owesMeters: boolean;
};

/** What of the alarm itself decides. */
export type AlarmTimes = {
  /** What the alarm is set to; null = it is not set. */
  armedMs: number | null;
  /** A time by which the alarm was requested whatever the state says. */
  requestedMs: number | null;
  /** Jobs failed: nothing but a request makes the alarm fire before this. */
  retryAtMs: number | null;
};

/** The time to set the alarm to; null = leave it as it is. The only place where the next alarm is computed. */
export function nextAlarmMs(
  run: AlarmState,
  { armedMs, requestedMs, retryAtMs }: AlarmTimes,
  nowMs: number,
): number | null {
  const isOwed = run.mustCallOthers || run.webhookDelayMs !== null;
  const isUrgent = isOwed || run.deleteAtMs !== null || requestedMs !== null;
  // Every new lease outlasts an alarm that is this near, so the leases need not be visited. Most turns return here.
  const isEarly = armedMs !== null && armedMs <= nowMs + LEASE_TTL_MS && armedMs <= (run.readyAtMs ?? Infinity);
  if (isEarly && !isUrgent) return null;
  const byState = Math.max(dueMs(run, nowMs), retryAtMs ?? -Infinity);
  const dueAtMs = alarmMs(Math.min(byState, requestedMs ?? Infinity), nowMs);
  // An alarm that is set too early stays: setting it costs a row, and when it fires it is set anew.
  return dueAtMs < (armedMs ?? Infinity) ? dueAtMs : null;
}

function dueMs(run: AlarmState, nowMs: number): number {
  const times = [run.expiresAtMs, run.readyAtMs, run.lapseAtMs, run.childDueMs, run.uploadDueMs];
  times.push(run.toolPermitEndMs, run.deleteAtMs);
  if (run.hasWork) times.push(workDueMs(run, nowMs));
  if (run.mustCallOthers) times.push(nowMs);
  // By then the gate has been reached for the calls that come next, or there are none.
  if (run.owesMeters) times.push(nowMs + LOST_CALL_MS);
  if (run.isReservationInDoubt) times.push(nowMs + NOTIFY_RETRY_MS);
  if (run.exportDelayMs !== null) times.push(nowMs + run.exportDelayMs);
  if (run.webhookDelayMs !== null) times.push(nowMs + run.webhookDelayMs);
  return Math.min(...times.map((timeMs) => timeMs ?? Infinity));
}

/**
 * The leases of executors with a socket outlast the alarm: should all of them end together with this instance, the next one
 * waits for the leases that it finds, and both must pass within a minute.
 */
function workDueMs(run: AlarmState, nowMs: number): number {
  if (run.mayLookLate) return nowMs + LOST_CALL_MS;
  const lookAtMs = nowMs + LEASE_TTL_MS;
  const leaseEndMs = run.leaseEndMs ?? lookAtMs;
  return run.hasGroups ? Math.min(leaseEndMs, lookAtMs) : leaseEndMs;
}

/** What the alarm of one instance is set to. */
export class AlarmClock {
  readonly #set: (atMs: number) => void;
  #armedMs: number | null = null;
  #retryAtMs: number | null = null;

  /** @param set Sets the platform's alarm. */
  constructor(set: (atMs: number) => void) {
    this.#set = set;
  }

  /** The alarm that an earlier instance has set, so that this one does not set it again; null = none. */
  restored(armedMs: number | null): void {
    this.#armedMs ??= armedMs;
  }

  /**
   * Sets the alarm, if it must fire earlier than it is set to.
   * @param requestedMs A time by which it must fire whatever the state says; null = none.
   */
  arm(run: AlarmState, nowMs: number, requestedMs: number | null = null): void {
    const atMs = nextAlarmMs(run, { armedMs: this.#armedMs, requestedMs, retryAtMs: this.#retryAtMs }, nowMs);
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
