/** A turn and the jobs of the alarm at once, for an operator whose run does not go on; and what of it has changed. */
import { TURN_NOW_MS } from "../../../src/limits.ts";
import type { TurnLook, TurnReport } from "../../../src/objects/methods/runs.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import type { RunState } from "../state.ts";

/** Runs them and reports; null = there is no run. Safe to repeat: an alarm does what is due, and nothing else. */
export async function turnNow(
  life: Pick<RunLifecycle, "run" | "alarm" | "submit" | "flushLog">,
  storage: Pick<DurableObjectStorage, "getAlarm">,
): Promise<TurnReport | null> {
  const { run } = life;
  if (run === null) return null;
  await life.flushLog();
  const before = lookAt(run, await storage.getAlarm());
  const logFrom = run.readableSeq;
  // A job may wait for another object, or for leases of an instance that ended: they go on when this returns.
  const jobs = life.alarm.fire().then(() => true);
  const isFinished = await Promise.race([jobs, scheduler.wait(TURN_NOW_MS).then(() => false)]);
  // What the jobs have not changed may still start something, as when a timer was lost.
  await life.submit<void>((reply) => reply());
  await life.flushLog();
  const after = lookAt(life.run ?? run, await storage.getAlarm());
  return { before, after, isFinished, logFrom, logTo: run.readableSeq };
}

function lookAt({ engine, openGroups, children, status }: RunState, alarmAtMs: number | null): TurnLook {
  const { readyCount, delayedCount } = engine.queue;
  const inFlight = engine.attempts.size;
  return {
    status,
    queued: readyCount,
    delayed: delayedCount,
    inFlight,
    openGroups: openGroups.size,
    openChildren: children.openCount,
    alarmAtMs,
  };
}
