/**
 * Those who follow the run's events live. Each is a Worker with one hibernatable socket, so the object sleeps while
 * nothing happens. A socket carries no events, only turns: the follower says up to which event it has them all, and is
 * told once when there are more, which it then reads. So nothing piles up here for one that is slow.
 */
import { FOLLOWERS_MAX } from "../../src/limits.ts";

/** What a follower is told: there are events it does not have, or there will never be any. */
type Told = "more" | "end";

export class Followers {
  readonly #ctx: DurableObjectState;
  /** Followers that have everything and wait, with the last event that they have. */
  #waiting = new Map<WebSocket, number>();

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    for (const socket of ctx.getWebSockets()) {
      const seq: unknown = socket.deserializeAttachment();
      if (typeof seq === "number") this.#waiting.set(socket, seq);
    }
  }

  /** True while somebody wants to hear at once of what happens. */
  get waiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Takes a follower's end of a new socket; null when there are too many. */
  accept(): WebSocket | null {
    if (this.#ctx.getWebSockets().length >= FOLLOWERS_MAX) return null;
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.#ctx.acceptWebSocket(ours);
    return theirs;
  }

  /** A follower has every event up to `seq` and wants to hear of the next. */
  wait(socket: WebSocket, seq: number): void {
    this.#waiting.set(socket, seq);
    socket.serializeAttachment(seq);
  }

  /** Tells those who wait that there is more than they have, or that the log is `final`. */
  tell(lastSeq: number, final: boolean): void {
    for (const [socket, seq] of this.#waiting) {
      if (lastSeq > seq) this.#tell(socket, "more");
      else if (final) this.#tell(socket, "end");
    }
  }

  forget(socket: WebSocket): void {
    this.#waiting.delete(socket);
  }

  /** Lets all of them go: the run's log is about to be deleted. */
  close(): void {
    for (const socket of this.#ctx.getWebSockets()) socket.close(1001, "the run is deleted");
    this.#waiting.clear();
  }

  #tell(socket: WebSocket, told: Told): void {
    this.#waiting.delete(socket);
    try {
      socket.serializeAttachment(null);
      socket.send(told);
    } catch {
      // It has gone; it connects again if it wants to know more.
    }
  }
}
