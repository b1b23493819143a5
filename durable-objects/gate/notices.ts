/** Tells runs that the class of their gate has changed: those that use it, a few at a time, and nobody waits for them. */
import type { GateGrant } from "../../src/gate/wire.ts";
import { GATE_NOTICES_AT_ONCE, GATE_NOTICES_MAX } from "../../src/limits.ts";
import { runOf, type Objects } from "../address.ts";

/** Sends a notice. Runs that it does not reach learn of the change by their next exchange. Never rejects. */
export async function notifyRuns(
  objects: Objects,
  gate: string,
  runs: readonly string[],
  notice: GateGrant,
): Promise<void> {
  const left = runs.slice(0, GATE_NOTICES_MAX).values();
  const next = async (): Promise<void> => {
    for (const run of left) {
      try {
        await runOf(objects, run).gateChanged(gate, notice);
      } catch {
        // It is restarting, or of a version without gates.
      }
    }
  };
  await Promise.all(Array.from({ length: GATE_NOTICES_AT_ONCE }, next));
}
