/** Cancelling a group or one of its slots: what is queued never starts, what is in flight is aborted. */
import { cancelGroup as cancelInEngine, cancelSlot as cancelSlotInEngine } from "../../../src/run/steps/cancel.ts";
import type { RunState } from "../state.ts";

/** Cancels a group. One that has ended keeps its state. */
export function cancelGroup(
  run: Pick<RunState, "engine" | "clientBoundGroups">,
  seq: number,
  message: string,
  nowMs: number,
): void {
  run.clientBoundGroups.forget(seq);
  const group = run.engine.groups.get(seq);
  if (group !== undefined && !group.done) cancelInEngine(run.engine, group, { reason: "cancelled", message }, nowMs);
}

/** Cancels one slot. False if there is no such slot; one that has ended keeps its state. */
export function cancelSlot(
  run: Pick<RunState, "engine" | "storedGroup">,
  { seq, index }: { seq: number; index: number },
  nowMs: number,
): boolean {
  const group = run.engine.groups.get(seq);
  if (group === undefined || group.done) return (run.storedGroup(seq)?.header.count ?? 0) > index;
  if (index >= group.header.count || group.graph?.frontier.isAbsent(index) === true) return false;
  cancelSlotInEngine(run.engine, group, index, { reason: "cancelled", message: "the slot was cancelled" }, nowMs);
  return true;
}
