/**
 * Group commit: calls into the object are queued as operations and run together in one turn, in one transaction. A call
 * that is committed alone costs a transaction and its fsync, which is more than the work itself.
 *
 * Turns are paced by load. A turn runs at once while there is nobody to wait for: the calls of a lone executor come one after
 * another, and it merges what has ended itself. While a turn is stored, its replies wait, and what arrives then comes from
 * others: it gathers for the next turn, which storage would make wait anyway. Many requests at once, as of a program that
 * runs again, thereby share commits. A pause of 2 to 4 ms on top of that was tried: it saves a tenth of the commits of a
 * wide batch and none of single calls, and delays both.
 *
 * A turn: each operation changes the state, `finish` dispatches and writes, and only then are replies sent. If
 * anything throws, nothing of the turn was written: `broken` discards this state, and every operation is rejected.
 */

type Operation = { run: (nowMs: number) => void; reject: (error: unknown) => void };

/** Queues an operation for the next turn; see `CommitQueue.submit`. */
export type Submit = <T>(run: (reply: (value: T) => void, nowMs: number) => void) => Promise<T>;

export type CommitDeps = {
  now: () => number;
  /** Runs after the operations of a turn: dispatch, one transaction, replies. */
  finish: (nowMs: number) => void;
  /** Called when a turn threw. */
  broken: (error: unknown) => void;
  /** Whether other calls are likely on their way, so that a turn should wait for them. */
  crowded: () => boolean;
  /** Calls back after what has arrived already has been delivered. */
  soon: (callback: () => void) => void;
  /** Resolves once what was written is durable, so that the replies to it leave. */
  stored: () => Promise<void>;
};

export class CommitQueue {
  readonly #deps: CommitDeps;
  #operations: Operation[] = [];
  #scheduled = false;
  /** Whether a turn is being stored, and the next one waits for that. */
  #storing = false;
  /** Whether the next turn runs even without an operation. */
  #poked = false;
  /** Replies of the running turn, sent at its end; null between turns. */
  #pendingReplies: (() => void)[] | null = null;

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
      if (this.#pendingReplies === null) resolve(value);
      else this.#pendingReplies.push(() => resolve(value));
    };
    this.#operations.push({ run: (nowMs) => run(reply, nowMs), reject });
    this.#schedule();
    return promise;
  }

  /** Runs a turn without an operation, because time has passed. */
  poke(): void {
    this.#poked = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#storing) return;
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
    this.#poked = false;
    this.#pendingReplies = replies;
    let isBroken = false;
    try {
      const nowMs = this.#deps.now();
      for (const operation of operations) operation.run(nowMs);
      this.#deps.finish(nowMs);
    } catch (error) {
      isBroken = true;
      replies.length = 0;
      this.#deps.broken(error);
      for (const operation of operations) operation.reject(error);
    } finally {
      this.#pendingReplies = null;
    }
    for (const send of replies) send();
    if (!isBroken) void this.#gather();
  }

  /** Lets what arrives gather until the replies of this turn leave: the busier the object, the more each turn commits. */
  async #gather(): Promise<void> {
    this.#storing = true;
    // A store that fails ends the object, and with it this queue.
    await this.#deps.stored().catch(() => undefined);
    this.#storing = false;
    if (this.#operations.length > 0 || this.#poked) this.#turn();
  }
}
