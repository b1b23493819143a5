/**
 * Group commit: calls into the object are queued as operations and run together in one turn, in one transaction. Every
 * call that is committed alone costs a transaction and its fsync, which is more than the work itself.
 *
 * A turn: each operation changes the state, `conclude` dispatches and writes, and only then are the replies let go. If
 * anything throws, nothing of the turn was written: `broken` gives up this state, and every operation is rejected.
 */

type Operation = { run: (nowMs: number) => void; reject: (error: unknown) => void };

export type CommitDeps = {
  now: () => number;
  /** Runs after the operations of a turn: dispatch, one transaction, replies. */
  conclude: (nowMs: number) => void;
  /** Called when a turn threw. */
  broken: (error: unknown) => void;
  /** Whether other calls are likely on their way, so that a turn should wait for them. */
  crowded: () => boolean;
  /** Calls back after what has arrived already has been delivered. */
  soon: (callback: () => void) => void;
};

export class CommitQueue {
  readonly #deps: CommitDeps;
  #operations: Operation[] = [];
  #scheduled = false;
  /** Replies of the turn that runs, until it is through; null between turns. */
  #held: (() => void)[] | null = null;

  constructor(deps: CommitDeps) {
    this.#deps = deps;
  }

  /**
   * Queues an operation. `run` gets `reply`, to be called at any time from the operation on: an operation may leave its
   * caller waiting. Rejects when its turn fails.
   */
  submit<T>(run: (reply: (value: T) => void, nowMs: number) => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const reply = (value: T): void => {
      if (this.#held === null) resolve(value);
      else this.#held.push(() => resolve(value));
    };
    this.#operations.push({ run: (nowMs) => run(reply, nowMs), reject });
    this.#schedule();
    return promise;
  }

  /** Runs a turn without an operation: time has passed. */
  poke(): void {
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    if (!this.#deps.crowded()) {
      this.#turn();
      return;
    }
    this.#scheduled = true;
    this.#deps.soon(() => {
      this.#scheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    const operations = this.#operations;
    const replies: (() => void)[] = [];
    this.#operations = [];
    this.#held = replies;
    try {
      const nowMs = this.#deps.now();
      for (const operation of operations) operation.run(nowMs);
      this.#deps.conclude(nowMs);
    } catch (error) {
      replies.length = 0;
      this.#deps.broken(error);
      for (const operation of operations) operation.reject(error);
    } finally {
      this.#held = null;
    }
    for (const letGo of replies) letGo();
  }
}
