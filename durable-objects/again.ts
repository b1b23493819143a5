/** Calling a run object that may restart under the call. */
import { runOf, type Objects } from "./address.ts";
import type { RunObject } from "./run/object.ts";

/** Delays before a call is made again, ms: a restart takes well under a second, and a deploy's is over within the last. */
const AGAIN_MS = [20, 100, 500, 2_000];

/** A run object as one request sees it: one stub while it works, a new one after an error, for then a stub is broken. */
export class RunCaller {
  readonly #objects: Objects;
  readonly #runId: string;
  #stub: DurableObjectStub<RunObject>;

  constructor(objects: Objects, runId: string) {
    this.#objects = objects;
    this.#runId = runId;
    this.#stub = runOf(objects, runId);
  }

  /** Makes a call that is safe to repeat until the object answers. Rejects with the last error when the tries are spent. */
  async untilAnswered<T>(call: (run: DurableObjectStub<RunObject>) => PromiseLike<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await call(this.#stub);
      } catch (error) {
        const delayMs = AGAIN_MS[failures];
        if (delayMs === undefined) throw error;
        await scheduler.wait(delayMs);
        this.#stub = runOf(this.#objects, this.#runId);
      }
    }
  }

  /** Makes a call once. */
  async once<T>(call: (run: DurableObjectStub<RunObject>) => PromiseLike<T>): Promise<T> {
    try {
      return await call(this.#stub);
    } catch (error) {
      this.#stub = runOf(this.#objects, this.#runId);
      throw error;
    }
  }

  /** Tells the object something that it can do without; a failure is nobody's. */
  tell(call: (run: DurableObjectStub<RunObject>) => PromiseLike<unknown>): void {
    // The promise of an RPC refuses a `then` without its first function.
    call(this.#stub).then(
      () => undefined,
      () => undefined,
    );
  }
}
