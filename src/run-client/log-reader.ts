/**
 * Reads a run's log, to its present end or live. Live, a hibernatable socket signals that there is more, and the events
 * themselves are read page by page: a slow client delays its own reading and nothing else.
 */
import { type Objects } from "../../durable-objects/address.ts";
import { RunCaller } from "./caller.ts";
import type { LogPage } from "../run-api/log.ts";
import { eventLines, type EventLine } from "../observe/events.ts";
import { withoutTexts } from "../observe/without-texts.ts";

/** Delays before a follower's socket is opened again, ms; the last one repeats. */
const RECONNECT_MS = [50, 200, 1_000, 5_000];

export class LogReader {
  readonly #caller: string | null;
  readonly #run: RunCaller;
  readonly #isViewed: boolean;

  /**
   * @param caller The run that reads; null = the operator, or a viewer.
   * @param isViewed Whether a viewer reads: the events are then without texts. Default: false.
   */
  constructor(objects: Objects, runId: string, caller: string | null, isViewed = false) {
    this.#caller = caller;
    this.#isViewed = isViewed;
    this.#run = new RunCaller(objects, runId);
  }

  /** Whether the run exists and the caller may read its log. */
  async readable(): Promise<boolean> {
    return (await this.#page(Number.MAX_SAFE_INTEGER)) !== null;
  }

  /** Every event after number `after`, to the log's present end. Returns the last number and whether more can come. */
  async *history(after: number): AsyncGenerator<EventLine[], { last: number; final: boolean }> {
    for (let last = after; ;) {
      const page = await this.#page(last);
      if (page === null) return { last, final: true };
      const lines = page.rows.flatMap((row) => eventLines(row, page.run)).filter(({ seq }) => seq > last);
      if (lines.length > 0) yield this.#isViewed ? lines.map(withoutTexts) : lines;
      const reached = page.rows.at(-1)?.last ?? last;
      if (page.final || reached === last) return { last: reached, final: page.final };
      last = reached;
    }
  }

  /** The same, and then further events as they happen, until the run has ended and all its events are read, or `signal` aborts. */
  async *live(after: number, signal: AbortSignal): AsyncGenerator<EventLine[]> {
    let bell: Bell | null = null;
    let failures = 0;
    try {
      for (let last = after; !signal.aborted;) {
        const read = yield* this.history(last);
        if (read.last > last) failures = 0;
        last = read.last;
        if (read.final) return;
        bell ??= await this.#bell(signal);
        if (bell !== null && (await bell.rung(last))) continue;
        bell = null;
        // The object restarts, or has too many followers.
        const delayMs = RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)] ?? 0;
        failures += 1;
        if (!signal.aborted) await scheduler.wait(delayMs);
      }
    } finally {
      bell?.close();
    }
  }

  #page(after: number): Promise<LogPage | null> {
    return this.#run.callWithRetry<LogPage | null>((run) => run.logPage(after, this.#caller));
  }

  /** A follower's socket; null if the run object gives none. */
  async #bell(signal: AbortSignal): Promise<Bell | null> {
    try {
      const headers = { upgrade: "websocket" };
      const { webSocket } = await this.#run.callOnce<Response>((run) => run.fetch("https://run/follow", { headers }));
      return webSocket === null ? null : new Bell(webSocket, signal);
    } catch {
      return null;
    }
  }
}

/** A socket that rings when there are more events than its follower has. */
class Bell {
  readonly #socket: WebSocket;
  #resolveRung: ((alive: boolean) => void) | null = null;
  #open = true;

  constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket;
    socket.accept();
    socket.addEventListener("message", () => this.#resolve(true));
    socket.addEventListener("close", () => this.#end());
    socket.addEventListener("error", () => this.#end());
    // The reader may have left while the socket was opening.
    if (signal.aborted) this.close();
    else signal.addEventListener("abort", () => this.close());
  }

  /** Resolves with true once there are events after `seq`, or no more will come; with false if the socket is lost. */
  rung(seq: number): Promise<boolean> {
    if (!this.#open) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#resolveRung = resolve;
      this.#socket.send(String(seq));
    });
  }

  close(): void {
    if (this.#open) this.#socket.close(1000);
    this.#end();
  }

  #end(): void {
    this.#open = false;
    this.#resolve(false);
  }

  #resolve(alive: boolean): void {
    this.#resolveRung?.(alive);
    this.#resolveRung = null;
  }
}
