/**
 * The run object's one alarm: when it fires, it does the jobs of jobs/table.ts. Everything that must happen even if the
 * present instance of the object is gone is a job of the alarm; timers only serve callers that wait here.
 */
import { LONG_POLL_MS, NOTIFY_RETRY_MS } from "../../src/limits.ts";
import type { Objects } from "../../src/objects/address.ts";
import { AlarmClock, isPressing } from "./alarm-clock.ts";
import type { AlarmHost, AlarmJob } from "./jobs/job.ts";
import { JOBS } from "./jobs/table.ts";
import type { LeaseRecovery } from "./lease-recovery.ts";
import type { RunState } from "./state.ts";
import type { RunStore } from "./store/store.ts";

export class RunAlarm {
  readonly #recovery: LeaseRecovery;
  readonly #host: AlarmHost;
  readonly #jobs: readonly AlarmJob[];
  readonly #clock: AlarmClock<RunState>;

  constructor(objects: Objects, store: RunStore, recovery: LeaseRecovery, host: AlarmHost) {
    this.#recovery = recovery;
    this.#host = host;
    this.#jobs = JOBS.map((make) => make({ objects, store, recovery, host }));
    this.#clock = new AlarmClock(this.#jobs, (atMs) => store.setAlarm(atMs));
  }

  /** The alarm that an earlier instance has set, so that this one does not set it again; null = none. */
  restored(armedMs: number | null): void {
    this.#clock.restored(armedMs);
  }

  /** Sets the alarm for leases that this instance found in the rows: nothing else may look for them in time. */
  armForFound(nowMs: number): void {
    const { run } = this.#host;
    if (run !== null && this.#recovery.hasFound(run.engine)) this.arm(nowMs);
  }

  /**
   * Sets the alarm, if it must fire earlier than it is set to.
   * @param requestedMs A time by which it must fire whatever the jobs say; null = none.
   */
  arm(nowMs: number, requestedMs: number | null = null): void {
    const { run } = this.#host;
    if (run !== null) this.#clock.arm(run, nowMs, requestedMs);
  }

  /** Makes the alarm fire at once. */
  fireNow(nowMs: number): void {
    this.arm(nowMs, nowMs);
  }

  /** Does every job of the alarm and sets the next one. */
  async fire(): Promise<void> {
    this.#clock.fired();
    const { run } = this.#host;
    if (run === null) return;
    for (const job of this.#jobs) job.start?.(run);
    await this.#host.submit<void>((reply, nowMs) => {
      for (const job of this.#jobs) job.change?.(run, nowMs);
      reply();
    });
    const isDone = await this.#act(run);
    if (this.#host.run !== run) return;
    const nowMs = Date.now();
    if (!isDone) this.#clock.failed(nowMs + NOTIFY_RETRY_MS);
    this.arm(nowMs);
    if (isDone) await this.#outliveFoundLeases(run);
  }

  /** Does what calls others, one job after the other. False if one has failed. */
  async #act(run: RunState): Promise<boolean> {
    for (const { name, act } of this.#jobs) {
      if (this.#host.run !== run) return true;
      try {
        await act?.(run);
      } catch (error) {
        console.error(`${run.settings.id} failed to ${name}; it will retry`, error);
        return false;
      }
    }
    return true;
  }

  /**
   * Leases that this instance found in the rows got a new term. Without callers the instance would be evicted before they
   * expire, and the one that the next alarm wakes would grant another term: so the alarm stays until they are gone.
   */
  async #outliveFoundLeases(run: RunState): Promise<void> {
    // The platform runs one alarm at a time: what presses would wait for this one.
    const isOver = (): boolean => isPressing(this.#jobs, run, Date.now()) || !this.#recovery.hasFound(run.engine);
    while (!isOver() && this.#recovery.isPending(Date.now())) await this.#host.until(isOver, LONG_POLL_MS);
  }
}
