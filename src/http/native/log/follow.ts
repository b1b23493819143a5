/**
 * `GET /runs/:id/events`: the log as it is written, as server-sent events or over a WebSocket. A follower needs a place at the run, of which each
 * token has few, and what it does not read counts: see unread.ts.
 */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import { UNREAD_RETRY_MS } from "../../../limits.ts";
import { SSE } from "../../replies/batch-lines.ts";
import type { EventLine } from "../../../log/events.ts";
import type { LogReader } from "../../../objects/clients/log-reader.ts";
import { callerOf } from "../runs.ts";
import { Unread, type Hold } from "./unread.ts";

/** Of all followers in this instance. */
const unread = new Unread();

/** Events as they happen, page by page; and what their follower has not read. */
type Following = { pages: AsyncGenerator<EventLine[]>; hold: Hold; gone: AbortController };

/** Takes a place and begins to follow. Throws a Refusal if there is none. */
export async function begin(c: Context<AppEnv>, reader: LogReader, after: number): Promise<Following> {
  const gone = new AbortController();
  c.req.raw.signal.addEventListener("abort", () => gone.abort());
  const place = await reader.place("follower", gone.signal);
  const hold = unread.hold(`${c.req.param("id") ?? ""} ${callerOf(c) ?? ""}`);
  gone.signal.addEventListener("abort", hold.release);
  return { pages: reader.live(after, gone.signal, place), hold, gone };
}

/** Server-sent events. What is yielded counts as unread until the next piece is asked for. */
export async function* events({ pages, hold, gone }: Following): AsyncGenerator<string> {
  try {
    // Shows the client that the connection works, and proxies that the answer has begun.
    yield SSE.keepAlive;
    for await (const page of pages) {
      const piece = page.map(({ seq, type, json }) => SSE.frame(type, seq, json)).join("");
      while (!hold.take(piece.length, Date.now())) {
        await scheduler.wait(UNREAD_RETRY_MS);
        if (gone.signal.aborted) return;
      }
      yield piece;
      hold.give(piece.length);
    }
  } finally {
    gone.abort();
    hold.release();
  }
}

/** One text message per event. */
export function followBySocket(c: Context<AppEnv>, following: Following): Response {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  const sent = new Sent(following.hold);
  const end = (): void => following.gone.abort();
  ours.accept();
  ours.addEventListener("message", ({ data }) => sent.confirm(Number(data)));
  ours.addEventListener("close", end);
  ours.addEventListener("error", end);
  c.executionCtx.waitUntil(send(ours, following, sent).catch(end));
  return new Response(null, { status: 101, webSocket: theirs });
}

async function send(socket: WebSocket, { pages, gone }: Following, sent: Sent): Promise<void> {
  for await (const page of pages) {
    for (const { seq, json } of page) {
      if (gone.signal.aborted) return;
      let waited = false;
      while (!sent.add(seq, json.length)) {
        // Room comes only from a client that says what it has read, and its first word may be on the way.
        if (waited && !sent.isConfirmed) return socket.close(1012, `resume with ?after=${seq - 1}`);
        await scheduler.wait(UNREAD_RETRY_MS);
        if (gone.signal.aborted) return;
        waited = true;
      }
      socket.send(json);
    }
  }
  socket.close(1000, "the run has ended");
}

/**
 * What was sent on one socket. There is no API for what of it is unsent, so all of it counts as unread until the socket is closed, but for what
 * the client says that it has.
 */
class Sent {
  readonly #hold: Hold;
  readonly #messages: { seq: number; chars: number }[] = [];
  #isConfirmed = false;

  constructor(hold: Hold) {
    this.#hold = hold;
  }

  /** Whether the client says what it has read. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /** Counts a message. False if there is no room for it. */
  add(seq: number, chars: number): boolean {
    if (!this.#hold.take(chars, Date.now())) return false;
    this.#messages.push({ seq, chars });
    return true;
  }

  /** The client has every event up to this number. */
  confirm(seq: number): void {
    if (Number.isNaN(seq)) return;
    this.#isConfirmed = true;
    const end = this.#messages.findIndex((message) => message.seq > seq);
    const read = this.#messages.splice(0, end === -1 ? this.#messages.length : end);
    for (const { chars } of read) this.#hold.give(chars);
  }
}
