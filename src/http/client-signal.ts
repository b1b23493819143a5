/** Whether the client of a request has left, for all parts of the gateway that want to hear of it. */
import type { LeavingSignal } from "../call.ts";

/** Listens to the signal of a request once: a listener there costs a call as much as ten headers. */
export class ClientSignal implements LeavingSignal {
  readonly #signal: AbortSignal;
  readonly #listeners: (() => void)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => {
      for (const listener of this.#listeners) listener();
    });
  }

  get aborted(): boolean {
    return this.#signal.aborted;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.push(listener);
  }
}
