/**
 * Finds the root run that has a group, for an operator who knows the group's id only. An id names its group within its run
 * and holds the time of the group's opening: so runs that are younger cannot have it, and of the others few fit the number.
 */
import type { Objects } from "../../address.ts";
import { groupSalt, groupSeqOfId } from "../../../run/queue/group-id.ts";
import { GROUP_RUNS_SEARCHED_MAX } from "../../../limits.ts";
import type { GroupView } from "../../methods/groups.ts";
import { RunCaller } from "../caller.ts";
import { runsBefore } from "../directory.ts";

/** The run's id; null if none of the newest GROUP_RUNS_SEARCHED_MAX root runs that may have the group has it. */
export async function runOfGroup(objects: Objects, groupId: string): Promise<string | null> {
  const openedMs = Number(/^pg-(\d{13})-/.exec(groupId)?.[1]);
  if (!Number.isSafeInteger(openedMs)) return null;
  // A run and its first group may be of the same ms, and clocks of machines differ a little.
  const before = { openedAt: (openedMs + CLOCKS_DIFFER_MS) * 1_000, id: "" };
  const { runs } = await runsBefore(objects, before, GROUP_RUNS_SEARCHED_MAX);
  for (const { id: runId } of runs) {
    const seq = groupSeqOfId(groupId, groupSalt(runId));
    if (seq === null || seq > SEQ_PLAUSIBLE_MAX) continue;
    const run = new RunCaller(objects, runId);
    const view = await run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
    if (view?.id === groupId) return runId;
  }
  return null;
}

const CLOCKS_DIFFER_MS = 5_000;

/** Numbers of groups begin at 1: of the ids of other runs, one in a thousand looks like one of these. */
const SEQ_PLAUSIBLE_MAX = 1_000_000;
