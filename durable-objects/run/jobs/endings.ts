/** Jobs that end what is over by its time: leases, groups without a client, uploads, the run. */
import { workerOf } from "../../../src/run/leases/shard.ts";
import { expireCredits } from "../../../src/run/steps/report-credit.ts";
import { expireLeases, loseAttempts } from "../../../src/run/steps/settle.ts";
import { LEASE_TTL_MS, LOST_CALL_MS, METERS_LATE_MS_MAX, METERS_RETRY_MS } from "../../../src/limits.ts";
import { bodiesPrefix } from "../../../src/objects/address.ts";
import { endRun } from "../end.ts";
import { cutPlan } from "../groups/append-plan.ts";
import { dropBodies } from "../groups/bodies.ts";
import { cancelGroup } from "../groups/cancel.ts";
import { hasEnded } from "../status.ts";
import { hasStartable } from "./executors.ts";
import type { MakeJob } from "./job.ts";

/** Who writes a plan says so in calls, not at a socket. */
const NOBODY = (): boolean => false;

const UNFOLLOWED = "no client follows the group any more, and it was opened with detach: false";

/** What decides when leases are looked at. Getters, because some visit every attempt. */
export type LeasedWork = {
  /** Whether groups are open or attempts in flight: a lease may expire, or a lane be missing. */
  readonly hasWork: boolean;
  /** Whether groups are open: an instance that the alarm wakes may have to miss the executors of these. */
  readonly hasGroups: boolean;
  /** When the first lease in flight expires by itself. */
  readonly leaseEndMs: number | null;
  /** Whether only single calls are in flight, stored or not, whose loss nobody waits for: a turn would find it, too. */
  readonly mayLookLate: boolean;
};

/**
 * When leases are looked at; null = there are none to look at. The leases of executors with a socket outlast the alarm: should all
 * of them end together with this instance, the next one waits for the leases that it finds, and both must pass within a minute.
 */
export function leasesDueMs(work: LeasedWork, nowMs: number): number | null {
  if (!work.hasWork) return null;
  if (work.mayLookLate) return nowMs + LOST_CALL_MS;
  const lookAtMs = nowMs + LEASE_TTL_MS;
  const leaseEndMs = work.leaseEndMs ?? lookAtMs;
  return work.hasGroups ? Math.min(leaseEndMs, lookAtMs) : leaseEndMs;
}

export const endLeases: MakeJob = ({ objects, recovery, host }) => ({
  name: "end leases",
  patience: "late",
  dueAtMs: (run, nowMs) => {
    const { engine, hasGroupWork: hasGroups, status } = run;
    const work: LeasedWork = {
      hasWork: hasStartable(run) || engine.attempts.size + engine.credits.size > 0,
      hasGroups,
      get leaseEndMs() {
        return engine.nextLeaseEndMs();
      },
      get mayLookLate() {
        const isWaitedFor = run.mustMissExecutors || hasEnded(status) || engine.calls.size > 0;
        return !isWaitedFor && !recovery.hasFound(engine);
      },
    };
    return leasesDueMs(work, nowMs);
  },
  change: ({ engine, workers, presentExecutors }, nowMs) => {
    expireLeases(engine, nowMs);
    workers.expire((seq) => presentExecutors.has(workerOf(seq)), nowMs);
    expireCredits(engine, nowMs);
  },
  // Those that a restart found in the rows and no lane makes any more are lost at once.
  act: async (run) => {
    const lost = await recovery.lostAttempts(objects, run);
    if (lost === null) return;
    await host.submit<void>((reply, nowMs) => {
      loseAttempts(run.engine, lost, nowMs);
      reply();
    });
  },
});

export const cancelUnfollowed: MakeJob = ({ host }) => ({
  name: "cancel groups without a client",
  patience: "late",
  dueAtMs: ({ clientBoundGroups }) => clientBoundGroups.nextLapseMs(host.isFollowed),
  change: (run, nowMs) => {
    for (const seq of run.clientBoundGroups.lapsed(host.isFollowed, nowMs)) cancelGroup(run, seq, UNFOLLOWED, nowMs);
  },
});

export const cutPlans: MakeJob = ({ store }) => ({
  name: "close plans that nobody writes",
  patience: "late",
  dueAtMs: ({ openPlans }) => openPlans.nextLapseMs(NOBODY),
  change: (run, nowMs) => {
    for (const seq of run.openPlans.lapsed(NOBODY, nowMs)) cutPlan(run, store, seq, nowMs);
  },
});

export const dropUploads: MakeJob = ({ objects, store }) => {
  const dropped: string[] = [];
  return {
    name: "drop abandoned uploads",
    patience: "late",
    dueAtMs: ({ openings }) => openings.nextDueMs,
    change: (run, nowMs) => {
      for (const seq of run.openings.takeAbandoned(nowMs)) {
        const openKey = run.storedGroup(seq)?.openKey;
        if (openKey !== undefined) dropped.push(openKey);
        run.addWrite(() => store.groups.drop(seq));
      }
    },
    // What this leaves if it fails is deleted with the run.
    act: async ({ settings: { id } }) => {
      const drops = dropped.splice(0).map((openKey) => dropBodies(objects, bodiesPrefix(id, openKey)));
      await Promise.allSettled(drops);
    },
  };
};

/** Before the run has ended, the next tool call frees them; then, the turn of the alarm. */
export const freeToolPermits: MakeJob = () => ({
  name: "free tool permits of an ended run",
  patience: "late",
  dueAtMs: ({ status, toolPermits }) => (hasEnded(status) ? toolPermits.nextEndMs() : null),
});

export const expireRun: MakeJob = () => ({
  name: "expire the run",
  patience: "late",
  dueAtMs: ({ status, settings }) => (hasEnded(status) ? null : settings.expiresAtMs),
  change: (run, nowMs) => {
    if (nowMs >= run.settings.expiresAtMs && !hasEnded(run.status)) endRun(run, "expired", nowMs);
  },
});

export const deleteRun: MakeJob = ({ host }) => {
  /** Gates could not be told what the run has cost: it is kept until they are asked again. */
  let keptUntilMs = -Infinity;
  return {
    name: "delete the run",
    patience: "pressing",
    dueAtMs: ({ deleteAtMs }) => (deleteAtMs === null ? null : Math.max(deleteAtMs, keptUntilMs)),
    act: async (run) => {
      const nowMs = Date.now();
      const { deleteAtMs } = run;
      if (deleteAtMs === null || nowMs < deleteAtMs) return;
      if (!host.meters.owes(run) || nowMs >= deleteAtMs + METERS_LATE_MS_MAX) await host.deleteRun(run);
      else keptUntilMs = nowMs + METERS_RETRY_MS;
    },
  };
};
