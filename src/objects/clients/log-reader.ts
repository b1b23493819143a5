/**
 * Reads a run's log, to its present end or live. Live, a hibernatable socket signals that there is more, and the events
 * themselves are read page by page: a slow client delays its own reading and nothing else.
 */
import { type Objects } from "../address.ts";
import { Refusal } from "../../errors.ts";
import { FOLLOWER_RETRY_MS, FOLLOWERS_PER_TOKEN_MAX, LOG_READERS_PER_TOKEN_MAX } from "../../limits.ts";
import { RunCaller, type RunStub } from "./caller.ts";
import type { LogPage, LogPlace } from "../methods/log.ts";
import { eventLines, type EventLine } from "../../log/events.ts";
import { withoutTexts } from "../../log/without-texts.ts";

/** What one who finds no place is told. */
const NO_PLACE: Readonly<Record<LogPlace, string>> = {
  follower: `the run has as many followers as it takes with one credential (${FOLLOWERS_PER_TOKEN_MAX} with a run token); end one, or read GET /runs/:id/log`,
  reader: `the log of the run has as many readers as it takes with one credential (${LOG_READERS_PER_TOKEN_MAX} with a run token); let one read to its end, or end it`,
};

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

  /** Every event after number `after`, to the log's present end. A client's reading needs a reader's place as long as it lasts. */
  history(after: number): AsyncGenerator<EventLine[]> {
    return this.#pages(after, false);
  }

  /** A place at the run, until it is closed or `signal` aborts. Rejects with a Refusal if the caller has too many of them. */
  async place(of: LogPlace, signal: AbortSignal): Promise<Place> {
    const response = await this.#run.callWithRetry<Response>((run) => this.#follow(run, of));
    if (response.webSocket !== null) return new Place(response.webSocket, signal);
    throw new Refusal({ reason: "overloaded", message: NO_PLACE[of], retryAfterMs: FOLLOWER_RETRY_MS });
  }

  async *#pages(after: number, isFollower: boolean): AsyncGenerator<EventLine[], { last: number; final: boolean }> {
    for (let last = after; ;) {
      const page = await this.#page(last, isFollower);
      if (page === null) return { last, final: true };
      const lines = page.rows.flatMap((row) => eventLines(row, page.run)).filter(({ seq }) => seq > last);
      if (lines.length > 0) yield this.#isViewed ? lines.map(withoutTexts) : lines;
      const reached = page.rows.at(-1)?.last ?? last;
      if (page.final || reached === last) return { last: reached, final: page.final };
      last = reached;
    }
  }

  /**
   * Every event after number `after` in small pages, and further events as they happen, until the run has ended and all its events are read, or
   * `signal` aborts. Large events of clients are cut. Reads nothing without a place: there are few of these.
   */
  async *live(after: number, signal: AbortSignal, given: Place | null = null): AsyncGenerator<EventLine[]> {
    let place = given;
    let failures = 0;
    try {
      for (let last = after; !signal.aborted;) {
        place ??= await this.#placeAgain(signal);
        if (place !== null) {
          const read = yield* this.#pages(last, true);
          if (read.last > last) failures = 0;
          last = read.last;
          if (read.final) return;
          if (await place.rung(last)) continue;
          place = null;
        }
        // The object restarts, or its places were taken meanwhile.
        const delayMs = RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)] ?? 0;
        failures += 1;
        if (!signal.aborted) await scheduler.wait(delayMs);
      }
    } finally {
      place?.close();
    }
  }

  #page(after: number, isFollower = false): Promise<LogPage | null> {
    return this.#run.callWithRetry<LogPage | null>((run) => run.logPage(after, this.#caller, isFollower));
  }

  #follow(run: RunStub, of: LogPlace): Promise<Response> {
    const query = new URLSearchParams({ place: of, ...(this.#caller === null ? {} : { caller: this.#caller }) });
    return run.fetch(`https://run/follow?${query.toString()}`, { headers: { upgrade: "websocket" } });
  }

  /** Another place after one was lost; null if the run object gives none. */
  async #placeAgain(signal: AbortSignal): Promise<Place | null> {
    try {
      const { webSocket } = await this.#run.callOnce<Response>((run) => this.#follow(run, "follower"));
      return webSocket === null ? null : new Place(webSocket, signal);
    } catch {
      return null;
    }
  }
}

/** A place at the run object: a socket, which rings for a follower when there are more events than it has. */
export class Place {
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
