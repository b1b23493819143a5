/** Calling a run object that may restart under the call. */
import { runOf, type Objects } from "./address.ts";
import type { RunObject } from "./run/object.ts";

/** Delays before a call is made again, ms: a restart takes well under a second, and a deploy's is over within the last. */
const AGAIN_MS = [20, 100, 500, 2_000];

/**
 * Makes a call that is safe to repeat until the object answers. A stub is broken after an error, so each try takes a new
 * one. Rejects with the last error when the tries are spent.
 */
export async function untilAnswered<T>(
  objects: Objects,
  runId: string,
  call: (run: DurableObjectStub<RunObject>) => PromiseLike<T>,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await call(runOf(objects, runId));
    } catch (error) {
      const delayMs = AGAIN_MS[failures];
      if (delayMs === undefined) throw error;
      await scheduler.wait(delayMs);
    }
  }
}
