/** Whether the client of a request has left, for all parts of the gateway that want to hear of it. */
import type { LeavingSignal } from "../call.ts";

/**
 * Listens to the signal of a request once: a listener there costs a call as much as ten headers. It listens only while somebody wants to
 * hear: the runtime keeps a listener, and all that it holds, until the next collection of all garbage, which takes the longer for it.
 */
export class ClientSignal implements LeavingSignal {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();
  readonly #left = (): void => {
    for (const listener of this.#listeners) listener();
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get aborted(): boolean {
    return this.#signal.aborted;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#listeners.size === 0) this.#signal.addEventListener("abort", this.#left);
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listeners.delete(listener) && this.#listeners.size === 0) {
      this.#signal.removeEventListener("abort", this.#left);
    }
  }
}
