/** Who may see and end a run. */
import type { RunState } from "../state.ts";

/** A run may be read, closed and cancelled by itself and by its ancestors; `caller` null = the operator. */
export function mayManage(run: RunState | null, caller: string | null): run is RunState {
  if (run === null) return false;
  const { id, ancestors } = run.settings;
  return caller === null || caller === id || ancestors.includes(caller);
}
