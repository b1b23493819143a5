/** The keys that do not work and for which calls of a run wait. */
import type { StopReason } from "../../call.ts";
import type { EngineState } from "../state.ts";
import type { LineWait } from "./waiting.ts";

/** A key that is stopped. `gate`: the name of its gate. */
export type Blocked = { gate: string; reason: StopReason; sinceMs: number };

/** The stopped keys for which queued calls wait, because no other key may take them; in the order of their stops. */
export function blockedGates(state: EngineState): Blocked[] {
  if (!state.upstreams.hasStop) return [];
  const blocked = new Map<string, Blocked>();
  for (const line of state.queue.lines()) {
    if (stoppedAt(state, line) === null) continue;
    for (const gate of state.lines.gatesOf(line)) {
      const stop = state.upstreams.get(gate)?.stop;
      if (stop != null) blocked.set(gate, { gate, reason: stop.reason, sinceMs: stop.sinceMs });
    }
  }
  return [...blocked.values()].sort((a, b) => a.sinceMs - b.sinceMs);
}

/**
 * The wait of a line all of whose keys are stopped; null = one works. It is no other if an attempt may start there to find out
 * whether the key works again.
 */
export function stoppedAt({ upstreams, lines }: EngineState, line: string): LineWait | null {
  let first: LineWait | null = null;
  for (const gate of lines.gatesOf(line)) {
    const stop = upstreams.get(gate)?.stop ?? null;
    if (stop === null) return null;
    first ??= { gate, reason: "stopped", readyAtMs: null };
  }
  return first;
}
