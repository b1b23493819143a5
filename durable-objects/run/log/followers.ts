/**
 * Workers that read the run's log for a client, each with one hibernatable socket, which is its place: there are few for each token.
 * Followers read it live. Their socket carries signals, not events: the follower sends the number of the last event that it has, the object
 * sends one signal when there are more, and the follower reads them by RPC. So nothing piles up here for a slow follower, and the object
 * sleeps while nothing happens. Readers of the log so far have places of their own, and no signals.
 */
import {
  FOLLOWERS_MAX,
  FOLLOWERS_PER_TOKEN_MAX,
  LOG_READERS_MAX,
  LOG_READERS_PER_TOKEN_MAX,
} from "../../../src/limits.ts";
import type { LogPlace } from "../../../src/objects/methods/log.ts";

/** The tag of these sockets: those of callers have another. */
const TAG = "log";

/** How many there are at once with the operator's key, and with one run token. */
const PLACES: Readonly<Record<LogPlace, { operator: number; token: number }>> = {
  follower: { operator: FOLLOWERS_MAX, token: FOLLOWERS_PER_TOKEN_MAX },
  reader: { operator: LOG_READERS_MAX, token: LOG_READERS_PER_TOKEN_MAX },
};

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
   * Accepts a follower or a reader and returns its end of the socket; null if its caller has too many of them. Each caller's are counted
   * alone, so that no token shuts out another one or the operator. `asked.caller`: the run whose token it has; absent = the operator.
   */
  accept(asked: URLSearchParams): WebSocket | null {
    const caller = asked.get("caller");
    const place: LogPlace = asked.get("place") === "reader" ? "reader" : "follower";
    const own = `${TAG} ${place} of ${caller ?? "the operator"}`;
    const most = PLACES[place][caller === null ? "operator" : "token"];
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
