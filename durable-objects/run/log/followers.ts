/**
 * Workers that follow the run's events live, each with one hibernatable socket, so that the object sleeps while nothing
 * happens. A socket carries signals, not events: the follower sends the number of the last event that it has, the object
 * sends one signal when there are more, and the follower reads them by RPC. So nothing piles up here for a slow follower.
 */
import { FOLLOWERS_MAX, FOLLOWERS_PER_TOKEN_MAX } from "../../../src/limits.ts";

/** The tag of these sockets: those of callers have another. */
const TAG = "log";

/** `more`: there are events that the follower does not have. `end`: there will never be any. */
type Signal = "more" | "end";

export class Followers {
  readonly #ctx: DurableObjectState;
  /** Followers that have every event and wait, with the number of the last event that they have. */
  #waiting = new Map<WebSocket, number>();

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    for (const socket of ctx.getWebSockets(TAG)) {
      const seq: unknown = socket.deserializeAttachment();
      if (typeof seq === "number") this.#waiting.set(socket, seq);
    }
  }

  /** True while a follower waits for the next event: then the log is written without delay. */
  get waiting(): boolean {
    return this.#waiting.size > 0;
  }

  /**
   * Accepts a follower and returns its end of the socket; null if its caller has too many. Each caller's are counted alone, so that no
   * token shuts out another one or the operator. `caller`: the run whose token it has; null = the operator.
   */
  accept(caller: string | null): WebSocket | null {
    const own = `${TAG} of ${caller ?? "the operator"}`;
    const most = caller === null ? FOLLOWERS_MAX : FOLLOWERS_PER_TOKEN_MAX;
    if (this.#ctx.getWebSockets(own).length >= most) return null;
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.#ctx.acceptWebSocket(ours, [TAG, own]);
    return theirs;
  }

  /** A follower has every event up to `seq` and waits for the next. */
  wait(socket: WebSocket, seq: number): void {
    this.#waiting.set(socket, seq);
    socket.serializeAttachment(seq);
  }

  /** Signals followers that wait: there are events after theirs, or the log is `final`. */
  notify(lastSeq: number, final: boolean): void {
    for (const [socket, seq] of this.#waiting) {
      if (lastSeq > seq) this.#signal(socket, "more");
      else if (final) this.#signal(socket, "end");
    }
  }

  forget(socket: WebSocket): void {
    this.#waiting.delete(socket);
  }

  /** Closes all sockets: the run's log is about to be deleted. */
  close(): void {
    for (const socket of this.#ctx.getWebSockets(TAG)) socket.close(1001, "the run is deleted");
    this.#waiting.clear();
  }

  #signal(socket: WebSocket, signal: Signal): void {
    this.#waiting.delete(socket);
    try {
      socket.serializeAttachment(null);
      socket.send(signal);
    } catch {
      // The follower is gone; it reconnects if it still follows.
    }
  }
}
