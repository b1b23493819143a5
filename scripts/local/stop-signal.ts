/** Keeps a local gateway running until a signal arrives, then finishes the requests in progress. */
import { constants } from "node:os";
import type { LocalGateway } from "./gateway.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Time for requests in progress to finish, ms: Docker kills a container 10 s after the stop signal. */
const DRAIN_MS = 8_000;
/** Time for workerd to stop after that, ms. A stop that hangs must not block the terminal. */
const STOP_MS = 1_500;

/** Interval of checking whether npm's shell still runs, ms. */
const PARENT_POLL_MS = 200;

/** Handles the signals that stop the process. */
export class StopSignal {
  readonly #received = Promise.withResolvers<(typeof SIGNALS)[number]>();

  /** Handles signals from now on, so that a signal during the start also stops the gateway. */
  constructor() {
    for (const signal of SIGNALS) process.on(signal, () => this.#received.resolve(signal));
    // npm sends a signal to the shell that it started, and the shell exits without forwarding it.
    if (process.env["npm_lifecycle_event"] !== undefined) this.#watchParent();
  }

  #watchParent(): void {
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(timer);
      this.#received.resolve("SIGTERM");
    }, PARENT_POLL_MS);
    timer.unref();
  }

  /**
   * Waits for the signal, then stops the gateway. Resolves with the exit status: 128 + the signal's number. A second
   * signal ends the process at once.
   */
  async stopped(gateway: LocalGateway): Promise<number> {
    const signal = await this.#received.promise;
    const status = 128 + constants.signals[signal];
    for (const name of SIGNALS) process.on(name, () => process.exit(status));
    const busy = gateway.busy();
    if (busy > 0) {
      const requests = busy === 1 ? "1 request" : `${busy} requests`;
      console.error(`Waiting up to ${DRAIN_MS / 1000} s for ${requests} to end. A second signal stops at once.`);
    }
    setTimeout(() => process.exit(status), DRAIN_MS + STOP_MS).unref();
    await gateway.stop(DRAIN_MS);
    return status;
  }
}
