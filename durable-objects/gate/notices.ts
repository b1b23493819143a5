/** Notifies the runs that use a gate when its class has changed, a few at a time. Nothing waits for these notices. */
import type { GateGrant } from "../../src/gate/wire.ts";
import { GATE_NOTICES_AT_ONCE, GATE_NOTICES_MAX } from "../../src/limits.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import type { Objects } from "../../src/objects/address.ts";

/** Sends a notice. Runs that it does not reach learn of the change by their next exchange. Never rejects. */
export async function notifyRuns(
  objects: Objects,
  gate: string,
  runs: readonly string[],
  notice: GateGrant,
): Promise<void> {
  const left = runs.slice(0, GATE_NOTICES_MAX).values();
  const next = async (): Promise<void> => {
    for (const run of left) await new RunCaller(objects, run).notify((stub) => stub.gateChanged(gate, notice));
  };
  await Promise.all(Array.from({ length: GATE_NOTICES_AT_ONCE }, next));
}
