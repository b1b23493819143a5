/** Jobs that make executors begin or stop: what groups wait for. */
import { nextReadyMs } from "../../../src/run/steps/next-ready.ts";
import { NOTIFY_RETRY_MS } from "../../../src/limits.ts";
import { laneOf, providerBatchOf } from "../../../src/objects/address.ts";
import { callLanes, startLanes } from "../../../src/objects/clients/lanes.ts";
import { lanesToStart } from "../executors/lanes.ts";
import type { RunState } from "../state.ts";
import type { MakeJob } from "./job.ts";

/**
 * Whether a group is open that may start something: one that waits for the budget, a confirmation or its provider must not wake
 * the run.
 */
export function hasStartable({ openGroups, engine }: Pick<RunState, "openGroups" | "engine">): boolean {
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group === undefined || (group.mayStart && !group.waitsForProvider)) return true;
  }
  return false;
}

/** Each turn starts what is ready, and so does the turn of the alarm: this job only says when. */
export const startWaiting: MakeJob = () => ({
  name: "start what waits for a time",
  patience: "punctual",
  dueAtMs: (run, nowMs) => {
    if (run.readyAtMs !== null || !run.hasGroupWork || hasStartable(run)) return run.readyAtMs;
    // Groups that wait for the budget or a confirmation have no other alarm, should this instance and its timer end.
    return nextReadyMs(run.engine, nowMs);
  },
});

/** A lane that cannot be reached learns of it when it renews its leases. */
export const abortAttempts: MakeJob = ({ objects }) => ({
  name: "abort attempts of lanes",
  patience: "pressing",
  dueAtMs: ({ engine }, nowMs) => (engine.givenUp.hasOfLanes ? nowMs : null),
  act: async ({ engine, settings: { id } }) => {
    const aborted = engine.givenUp.takeOfLanes();
    await callLanes([...aborted.keys()], async (lane) => laneOf(objects, id, lane).abort(aborted.get(lane) ?? []));
  },
});

export const startMissingLanes: MakeJob = ({ objects }) => {
  /** When lanes that could not be reached are started again; null = all were. */
  let retryAtMs: number | null = null;
  return {
    name: "start lanes",
    patience: "punctual",
    dueAtMs: () => retryAtMs,
    act: async (run) => {
      const { id } = run.settings;
      const nowMs = Date.now();
      const lanes = lanesToStart(run, nowMs);
      if (lanes.length > 0) run.laneStarts.started(nowMs);
      const unreached = await startLanes(objects, id, lanes);
      retryAtMs = unreached > 0 ? Date.now() + NOTIFY_RETRY_MS : null;
      if (unreached > 0) run.laneStarts.due();
      if (unreached > 0) console.error(`${unreached} of ${lanes.length} lanes of ${id} could not be started; retrying`);
    },
  };
};

/** Starts the objects that feed providers' batches, or makes them cancel these. */
export const notifyProviders: MakeJob = ({ objects }) => ({
  name: "notify the feeders of providers' batches",
  patience: "pressing",
  dueAtMs: (run, nowMs) => (run.providerNotices.isDue(run) ? nowMs : null),
  act: async (run) => {
    const { id: runId } = run.settings;
    for (const notice of [...run.providerNotices.due(run)]) {
      await providerBatchOf(objects, runId, notice.seq).notify({ runId, ...notice });
      run.providerNotices.sent(notice);
    }
  },
});
