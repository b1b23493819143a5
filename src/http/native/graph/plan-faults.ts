/** The lines of an arriving plan that are no tasks, for the events of its answer. */
import type { PlanFault } from "../../../run/graph/types.ts";

export class PlanFaults {
  #faults: PlanFault[] = [];
  #changed = Promise.withResolvers<null>();

  add(faults: readonly PlanFault[]): void {
    if (faults.length === 0) return;
    this.#faults.push(...faults);
    this.#changed.resolve(null);
  }

  /** What has come since the last call. */
  take(): readonly PlanFault[] {
    const faults = this.#faults;
    if (faults.length > 0) {
      this.#faults = [];
      this.#changed = Promise.withResolvers<null>();
    }
    return faults;
  }

  /** Resolves once `take` would give something. */
  changed(): Promise<null> {
    return this.#changed.promise;
  }
}
