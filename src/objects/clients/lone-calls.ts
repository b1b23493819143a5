/**
 * Calls in flight that were alone in their coalescing window when they got their permit. The second call of a window
 * forms its group, and the permit of any later call of the window shows the group's id; so a call of this isolate
 * learns of its group from the others, without a call to the run object. One whose group was formed by another isolate's
 * calls alone does not.
 */
import type { Permit } from "../methods/calls.ts";
import { RenewedMap } from "../../renewed/map.ts";

type InWindow = Pick<Permit, "parallelGroupId" | "windowOpenedAtMs">;

/** A call's parallel group, as far as this isolate knows. */
export type LoneCall = InWindow;

export class LoneCalls {
  /** By run and window. A window has one call that is alone in it at most. */
  readonly #calls = new RenewedMap<string, LoneCall>();

  /** Number of calls that are alone in their window so far. */
  get size(): number {
    return this.#calls.size;
  }

  /** Adds a call that starts now; its `parallelGroupId` is set when another call shows it. Remove it when it has ended. */
  add(runId: string, { parallelGroupId, windowOpenedAtMs }: InWindow): LoneCall {
    const call = { parallelGroupId, windowOpenedAtMs };
    if (windowOpenedAtMs === null) return call;
    const key = keyOf(runId, windowOpenedAtMs);
    if (parallelGroupId === null) {
      this.#calls.set(key, call);
      return call;
    }
    this.#learn(key, parallelGroupId);
    return call;
  }

  /** Learns of a window from a call that its run stores, and whose own answer does not come through here. */
  joined(runId: string, { parallelGroupId, windowOpenedAtMs }: InWindow): void {
    if (parallelGroupId !== null && windowOpenedAtMs !== null)
      this.#learn(keyOf(runId, windowOpenedAtMs), parallelGroupId);
  }

  #learn(key: string, parallelGroupId: string): void {
    const first = this.#calls.get(key);
    if (first === undefined) return;
    first.parallelGroupId = parallelGroupId;
    this.#calls.delete(key);
  }

  remove(runId: string, call: LoneCall): void {
    if (call.windowOpenedAtMs === null) return;
    const key = keyOf(runId, call.windowOpenedAtMs);
    if (this.#calls.get(key) === call) this.#calls.delete(key);
  }
}

/** The calls of this isolate. */
export const loneCalls = new LoneCalls();

function keyOf(runId: string, windowOpenedAtMs: number): string {
  return `${runId} ${windowOpenedAtMs}`;
}
