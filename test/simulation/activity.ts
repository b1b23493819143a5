/**
 * What runs code of the gateway: an instance of an object, or a request to a Worker. When it ends, nothing that it waits for ever
 * comes back, as when its machine loses power: its timers do not fire, and replies to it are dropped.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export class Activity {
  readonly name: string;
  /** Resolves once what it has written is durable: before, nothing that it sends leaves. Null = nothing is unwritten. */
  readonly durable: () => Promise<void> | null;
  #isAlive = true;
  /** Timers that will fire. */
  timers = 0;
  /** Calls and fetches without a reply. */
  calls = 0;
  /** Fetches that wait for headers, and those that the platform keeps from starting. */
  waitingFetches = 0;
  readonly heldFetches: (() => void)[] = [];
  readonly #ended: (() => void)[] = [];

  constructor(name: string, durable: () => Promise<void> | null = () => null) {
    this.name = name;
    this.durable = durable;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Calls back when it ends. */
  whenEnded(callback: () => void): void {
    this.#ended.push(callback);
  }

  end(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    for (const callback of this.#ended.splice(0)) callback();
  }

  /** Runs code as part of it. */
  run<T>(code: () => T): T {
    return running.run(this, code);
  }
}

const running = new AsyncLocalStorage<Activity>();

/** Whose code runs now. Throws outside of any. */
export function current(): Activity {
  const activity = running.getStore();
  if (activity === undefined) throw new Error("code of the gateway runs outside of an object and of a request");
  return activity;
}
