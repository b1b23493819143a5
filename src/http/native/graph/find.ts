/** Finds the graph that the id in a path names. */
import { groupSalt, groupSeqOfId } from "../../../run/queue/group-id.ts";
import { Refusal } from "../../../errors.ts";
import { NAME_CHARS_MAX } from "../../../limits.ts";
import type { GroupView } from "../../../objects/methods/groups.ts";
import type { RunCaller } from "../../../objects/clients/caller.ts";

/** The run's graph of an id, by its number. Throws a Refusal if it has none, or if the group has no graph. */
export async function findGraph(run: RunCaller, id: string): Promise<{ seq: number; view: GroupView }> {
  const seq = groupSeqOfId(id, groupSalt(run.runId));
  const view = seq === null ? null : await run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
  if (seq !== null && view?.id === id && view.graph !== undefined) return { seq, view };
  throw new Refusal({ reason: "not_found", what: `graph ${id.slice(0, NAME_CHARS_MAX)}` });
}
