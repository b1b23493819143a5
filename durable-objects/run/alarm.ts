/**
 * The run object's one alarm: when it fires, and the jobs that it does then. Everything that must happen even if the
 * present instance of the object is gone is a job of the alarm; timers only serve callers that wait here.
 */
import { zeroAmounts, type Amounts } from "../../src/run/money/ledger.ts";
import { expireCredits } from "../../src/run/steps/report-credit.ts";
import { nextReadyMs } from "../../src/run/steps/next-ready.ts";
import { expireLeases, loseAttempts } from "../../src/run/steps/settle.ts";
import { workerOf } from "../../src/run/leases/shard.ts";
import { LONG_POLL_MS, METERS_LATE_MS_MAX, METERS_RETRY_MS, NOTIFY_RETRY_MS } from "../../src/limits.ts";
import { owedGates } from "../../src/run/steps/metered.ts";
import { bodiesPrefix, laneOf, providerBatchOf, type Objects } from "../../src/objects/address.ts";
import { AlarmClock, type AlarmState } from "./alarm-clock.ts";
import type { Submit } from "./turns/commit-queue.ts";
import { endRun } from "./end.ts";
import { dropBodies } from "./groups/bodies.ts";
import { cutPlan } from "./groups/append-plan.ts";
import { cancelGroup } from "./groups/cancel.ts";
import type { LogExport } from "./log/export.ts";
import { missingLanes } from "./executors/lanes.ts";
import type { LeaseRecovery } from "./lease-recovery.ts";
import type { RunState } from "./state.ts";
import { hasEnded } from "./status.ts";
import type { RunStore } from "./store/store.ts";
import { endChildren } from "./tree/notify.ts";
import type { Patches } from "./tree/patch.ts";
import type { RunWebhooks } from "./webhooks.ts";

/** Who writes a plan says so in calls, not at a socket. */
const NOBODY = (): boolean => false;

const UNFOLLOWED = "no client follows the group any more, and it was opened with detach: false";

type Around = {
  isFollowed: (seq: number) => boolean;
  hasFound: () => boolean;
  exportDelayMs: () => number | null;
  webhookDelayMs: () => number | null;
};

function alarmStateOf(run: RunState, { isFollowed, hasFound, exportDelayMs, webhookDelayMs }: Around): AlarmState {
  const { engine, children, openings, toolPermits } = run;
  return {
    get readyAtMs() {
      if (run.readyAtMs !== null || !run.hasGroupWork || hasStartable(run)) return run.readyAtMs;
      // Groups that wait for the budget or a confirmation have no other alarm, should this instance and its timer end.
      return nextReadyMs(engine, Date.now());
    },
    get lapseAtMs() {
      const unfollowedMs = run.clientBoundGroups.nextLapseMs(isFollowed) ?? Infinity;
      const lapseMs = Math.min(unfollowedMs, run.openPlans.nextLapseMs(NOBODY) ?? Infinity);
      return lapseMs === Infinity ? null : lapseMs;
    },
    get mayLookLate() {
      const isWaitedFor = run.hasGroupWork || hasEnded(run.status) || engine.calls.size > 0;
      return !isWaitedFor && !hasFound();
    },
    get expiresAtMs() {
      return hasEnded(run.status) ? null : run.settings.expiresAtMs;
    },
    get hasWork() {
      return hasStartable(run) || engine.attempts.size + engine.credits.size > 0;
    },
    get hasGroups() {
      return run.hasGroupWork;
    },
    get leaseEndMs() {
      return engine.nextLeaseEndMs();
    },
    get childDueMs() {
      return children.nextDueMs();
    },
    get uploadDueMs() {
      return openings.nextDueMs;
    },
    get toolPermitEndMs() {
      return hasEnded(run.status) ? toolPermits.nextEndMs() : null;
    },
    get mustCallOthers() {
      return mustCallOthers(run);
    },
    get isReservationInDoubt() {
      return run.isReservationInDoubt;
    },
    get exportDelayMs() {
      return exportDelayMs();
    },
    get webhookDelayMs() {
      return webhookDelayMs();
    },
    get deleteAtMs() {
      return run.deleteAtMs;
    },
    get owesMeters() {
      return !hasEnded(run.status) && owedGates(engine).length > 0;
    },
  };
}

/**
 * Whether a group is open that may start something: one that waits for the budget, a confirmation or its provider must not wake
 * the run.
 */
function hasStartable({ openGroups, engine }: Pick<RunState, "openGroups" | "engine">): boolean {
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group === undefined || (group.mayStart && !group.waitsForProvider)) return true;
  }
  return false;
}

function mustCallOthers(run: RunState): boolean {
  return run.mustReport || run.mustNotifyChildren || run.engine.givenUp.hasOfLanes || run.providerNotices.isDue(run);
}

/** What the jobs need of the object around them. */
export type AlarmHost = {
  /** The run; null if it was never opened, or is deleted. */
  readonly run: RunState | null;
  submit: Submit;
  /** Whether a client follows a group at a socket. */
  isFollowed: (seq: number) => boolean;
  until: (ready: () => boolean, waitMs: number) => Promise<void>;
  /** Reports to the run's holder what it spent, if it is final. */
  report: () => Promise<void>;
  /** Reports to the gates what attempts have cost, where nobody else does. False if one could not be reached. */
  reportMeters: () => Promise<boolean>;
  /** Reports to the list of runs how far the run is; never rejects. */
  reportSummary: () => Promise<void>;
  childEnded: (childId: string, spent: Amounts, overrun: Amounts | null) => Promise<void>;
  /** The export of the log; null = traces are not exported. */
  readonly logExport: Pick<LogExport, "delayMs" | "start"> | null;
  /** The deliveries to the operator's webhook. */
  readonly webhooks: Pick<RunWebhooks, "delayMs" | "start">;
  readonly patches: Pick<Patches, "settleReservation">;
  /** Deletes the run and everything it stores. */
  deleteRun: (run: RunState) => Promise<void>;
};

export class RunAlarm {
  readonly #objects: Objects;
  readonly #store: RunStore;
  readonly #recovery: LeaseRecovery;
  readonly #host: AlarmHost;
  readonly #clock: AlarmClock;

  constructor(objects: Objects, store: RunStore, recovery: LeaseRecovery, host: AlarmHost) {
    this.#objects = objects;
    this.#store = store;
    this.#recovery = recovery;
    this.#host = host;
    this.#clock = new AlarmClock((atMs) => store.setAlarm(atMs));
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

  #stateOf(run: RunState): AlarmState {
    const hasFound = (): boolean => this.#recovery.hasFound(run.engine);
    const { isFollowed, logExport, webhooks } = this.#host;
    const exportDelayMs = (): number | null => logExport?.delayMs(Date.now()) ?? null;
    const webhookDelayMs = (): number | null => webhooks.delayMs(Date.now());
    return alarmStateOf(run, { isFollowed, hasFound, exportDelayMs, webhookDelayMs });
  }

  /**
   * Sets the alarm, if it must fire earlier than it is set to.
   * @param requestedMs A time by which it must fire whatever the state says; null = none.
   */
  arm(nowMs: number, requestedMs: number | null = null): void {
    const { run } = this.#host;
    if (run !== null) this.#clock.arm(this.#stateOf(run), nowMs, requestedMs);
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
    this.#host.logExport?.start();
    this.#host.webhooks.start();
    await this.#expire(run);
    await this.#abortAttempts(run);
    await this.#reconcileLeases(run);
    const unreached = await this.#startLanes(run);
    try {
      await this.#notifyProviders(run);
      await this.#endAbandonedChildren(run);
      await this.#notifyChildren(run);
      await this.#host.report();
      const hasMeters = await this.#host.reportMeters();
      if (run.isReservationInDoubt) await this.#host.patches.settleReservation(run);
      if (Date.now() >= (run.deleteAtMs ?? Infinity)) {
        const isLate = Date.now() >= (run.deleteAtMs ?? Infinity) + METERS_LATE_MS_MAX;
        if (hasMeters || isLate) return await this.#host.deleteRun(run);
        this.#clock.failed(Date.now() + METERS_RETRY_MS);
        return this.arm(Date.now());
      }
      await this.#host.reportSummary();
      const nowMs = Date.now();
      this.arm(nowMs, unreached > 0 ? nowMs + NOTIFY_RETRY_MS : null);
      await this.#outliveFoundLeases(run);
    } catch (error) {
      console.error(`${run.settings.id} could not notify its relatives; it will retry`, error);
      const nowMs = Date.now();
      this.#clock.failed(nowMs + NOTIFY_RETRY_MS);
      this.arm(nowMs);
    }
  }

  /** Ends what is over by now: leases, groups that lost their client, uploads that were abandoned, the run. */
  async #expire(run: RunState): Promise<void> {
    const dropped: string[] = [];
    await this.#host.submit<void>((reply, nowMs) => {
      expireLeases(run.engine, nowMs);
      run.workers.expire((seq) => run.presentExecutors.has(workerOf(seq)), nowMs);
      expireCredits(run.engine, nowMs);
      for (const seq of run.clientBoundGroups.lapsed(this.#host.isFollowed, nowMs))
        cancelGroup(run, seq, UNFOLLOWED, nowMs);
      for (const seq of run.openPlans.lapsed(NOBODY, nowMs)) cutPlan(run, this.#store, seq, nowMs);
      for (const seq of run.openings.takeAbandoned(nowMs)) {
        const openKey = run.storedGroup(seq)?.openKey;
        if (openKey !== undefined) dropped.push(openKey);
        run.addWrite(() => this.#store.groups.drop(seq));
      }
      if (nowMs >= run.settings.expiresAtMs && !hasEnded(run.status)) endRun(run, "expired", nowMs);
      reply();
    });
    // What this leaves if it fails is deleted with the run.
    const drops = dropped.map((openKey) => dropBodies(this.#objects, bodiesPrefix(run.settings.id, openKey)));
    await Promise.allSettled(drops);
  }

  /** Makes lanes close the connections of aborted attempts. A lane that cannot be reached learns of it when it renews its leases. */
  async #abortAttempts({ engine, settings: { id } }: RunState): Promise<void> {
    const aborted = [...engine.givenUp.takeOfLanes()];
    await Promise.allSettled(aborted.map(([lane, attemptIds]) => laneOf(this.#objects, id, lane).abort(attemptIds)));
  }

  /** Ends at once, as lost, the attempts that a restart found in the rows and no lane is making any more. */
  async #reconcileLeases(run: RunState): Promise<void> {
    const lost = await this.#recovery.lostAttempts(this.#objects, run);
    if (lost === null) return;
    await this.#host.submit<void>((reply, nowMs) => {
      loseAttempts(run.engine, lost, nowMs);
      reply();
    });
  }

  /** Starts missing lanes. Returns how many could not be reached. */
  async #startLanes(run: RunState): Promise<number> {
    const { id } = run.settings;
    const lanes = run.hasGroupWork ? missingLanes(run) : [];
    if (lanes.length > 0) run.laneStarts.started(Date.now());
    const starts = await Promise.allSettled(lanes.map((lane) => laneOf(this.#objects, id, lane).start(id, lane)));
    const unreached = starts.filter(({ status }) => status === "rejected").length;
    if (unreached > 0) console.error(`${unreached} of ${lanes.length} lanes of ${id} could not be started; retrying`);
    return unreached;
  }

  /** Starts the objects that feed providers' batches, or makes them cancel these. */
  async #notifyProviders(run: RunState): Promise<void> {
    for (const notice of [...run.providerNotices.due(run)]) {
      const { id: runId } = run.settings;
      await providerBatchOf(this.#objects, runId, notice.seq).notify({ runId, ...notice });
      run.providerNotices.sent(notice);
    }
  }

  #endAbandonedChildren(run: RunState): Promise<void> {
    const abandoned = run.children.abandoned(Date.now());
    return endChildren(this.#objects, abandoned, "cancelled", (childId) => this.#childNeverOpened(childId));
  }

  async #notifyChildren(run: RunState): Promise<void> {
    const { status } = run;
    if (!hasEnded(status) || !run.mustNotifyChildren) return;
    await endChildren(this.#objects, run.children.open, status, (childId) => this.#childNeverOpened(childId));
    run.childrenNotified(status);
  }

  #childNeverOpened(childId: string): Promise<void> {
    return this.#host.childEnded(childId, zeroAmounts(), zeroAmounts());
  }

  /**
   * Leases that this instance found in the rows got a new term. Without callers the instance would be evicted before they
   * expire, and the one that the next alarm wakes would grant another term: so the alarm stays until they are gone.
   */
  async #outliveFoundLeases(run: RunState): Promise<void> {
    // The platform runs one alarm at a time: what must be sent to others would wait for this one.
    const isOver = (): boolean => mustCallOthers(run) || !this.#recovery.hasFound(run.engine);
    while (!isOver() && this.#recovery.isPending(Date.now())) await this.#host.until(isOver, LONG_POLL_MS);
  }
}
