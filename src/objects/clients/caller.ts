/** Calls to a run object that may restart during the call. Every call to a run object from outside goes through here. */
import { cassetteOf, runOf, type Objects } from "../address.ts";
import { Refusal } from "../../errors.ts";
import { OBJECT_OVERLOADED_RETRY_MS } from "../../limits.ts";
import { readText, type TextPart } from "./context-text.ts";
import type { RunSettings } from "../methods/runs.ts";
import { objectFailure, withRetry } from "./retry.ts";

/** A stub of a run object. */
export type RunStub = ReturnType<typeof runOf>;
type Call<T> = (run: RunStub) => PromiseLike<T>;

/** A run object as one request sees it: one stub while it works, a new one after an error, for then a stub is broken. */
export class RunCaller {
  readonly runId: string;
  readonly #objects: Objects;
  readonly #region: RunSettings["region"];
  /** null = none was needed yet, or the last one is broken. */
  #stub: RunStub | null = null;

  /** @param region Hint where an object begins that is not there yet: for who opens the run. */
  constructor(objects: Objects, runId: string, region: RunSettings["region"] = null) {
    this.#objects = objects;
    this.runId = runId;
    this.#region = region;
  }

  get #live(): RunStub {
    return (this.#stub ??= runOf(this.#objects, this.runId, this.#region));
  }

  /**
   * Makes an idempotent call, and retries it while the object restarts. Rejects with the last error when the retries are
   * spent, at once with an error that another call would meet as well, and with a Refusal (`overloaded`, 503) if the
   * object is overloaded: retries would keep it so.
   */
  callWithRetry<T>(call: Call<T>): Promise<T> {
    return withRetry(() => this.callOnce(call), { wait: (ms) => scheduler.wait(ms), random: Math.random });
  }

  /** Makes a call that must not be repeated, or that is not worth it. Rejects as `callWithRetry`, without retries. */
  async callOnce<T>(call: Call<T>): Promise<T> {
    try {
      return await call(this.#live);
    } catch (error) {
      this.#stub = null;
      if (objectFailure(error) !== "overloaded") throw error;
      const message = "the run has more requests than its object can take; retry later";
      throw new Refusal({ reason: "overloaded", message, retryAfterMs: OBJECT_OVERLOADED_RETRY_MS });
    }
  }

  /** Reads bytes of a text that the run has stored; null if it was deleted. */
  readText(part: TextPart): Promise<Uint8Array | null> {
    return withRetry(() => readText(this.#objects, this.runId, part), {
      wait: (ms) => scheduler.wait(ms),
      random: Math.random,
    });
  }

  /** Makes an idempotent call to the object of a tape, and retries it while that restarts. Rejects as `callWithRetry`. */
  callCassette<T>(tape: string, call: (cassette: ReturnType<typeof cassetteOf>) => PromiseLike<T>): Promise<T> {
    return withRetry(async () => call(cassetteOf(this.#objects, tape)), {
      wait: (ms) => scheduler.wait(ms),
      random: Math.random,
    });
  }

  /**
   * Sends the object something that it can do without: errors are ignored. Resolves once it has arrived, or failed: it is
   * lost if the request ends before.
   */
  async notify(call: Call<unknown>): Promise<void> {
    try {
      await call(this.#live);
    } catch {
      // It can do without.
    }
  }
}
