/** Opening a group for the Worker of its client, which claims its first attempts in the same call. */
import type { CallPage } from "../../../src/run/queue/call-page.ts";
import { workerOf } from "../../../src/run/leases/shard.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupReply, OpenGroupRequest, WorkerState } from "../../../src/objects/methods/groups.ts";
import { claim } from "../executors/claim.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { openGroup } from "./open.ts";
import type { Prepared } from "./prepare.ts";

/** A Worker that has just opened its group: it holds nothing, whatever an earlier reply has given it. */
const NEW_WORKER: WorkerState = { covers: null, asksForLanes: false, leaves: false, holds: [], gaveUp: [] };

/**
 * `capacity`: the attempts that the caller claims; null = others execute the group. `graph` null = its slots are independent. `prepared`: what
 * was read of the group before the turn; null = nothing.
 */
type Opening = {
  request: OpenGroupRequest;
  pages: readonly CallPage[];
  capacity: number | null;
  graph: CompiledGraph | null;
  prepared: Prepared | null;
};

/** Opens a group. Who has opened it gets its first attempts with the reply; who has found it gets none. */
export function openAndClaim(
  run: RunState,
  store: RunStore,
  { request, pages, capacity, graph, prepared }: Opening,
  reply: (opened: OpenGroupReply) => void,
  nowMs: number,
): void {
  const opened = openGroup(run, store, { request, pages, hasWorker: capacity !== null, graph, prepared }, nowMs);
  if (!opened.ok || opened.replayed || opened.isHeld === true || capacity === null) return reply(opened);
  // Who claims nothing opens the group for another executor, which may have begun by the time of a repeated request.
  const after = { epoch: run.epoch, position: 0 };
  const worker = capacity === 0 ? { ...NEW_WORKER, holds: null } : { ...NEW_WORKER, after };
  const first = { executor: workerOf(opened.seq), settlements: [], capacity, waits: false, worker, reach: null };
  claim(run, first, (claimed) => reply({ ...opened, claim: claimed }), nowMs);
}
