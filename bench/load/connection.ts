/**
 * One keep-alive HTTP/1.1 connection that posts and waits, with as little work per request as a socket allows: the load
 * generator must cost far less than what it measures. Understands `content-length` and chunked replies.
 */
import { connect } from "node:net";
import type { Socket } from "node:net";

type Waiting = { resolve: (status: number) => void; reject: (error: Error) => void };

export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #waiting: Waiting | null = null;

  constructor(url: URL) {
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    this.#socket.on("data", (data) => this.#onData(data));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error("the server closed the connection")));
  }

  /** Sends a whole request, head and body; resolves with the status once the reply is read to its end. */
  async send(request: string): Promise<number> {
    return await new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = null;
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error);
    this.#waiting = null;
  }

  #onData(data: Buffer): void {
    this.#received = this.#received.length === 0 ? data : Buffer.concat([this.#received, data]);
    const status = statusOfWhole(this.#received);
    if (status === null) return;
    this.#received = Buffer.alloc(0);
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve(status);
  }
}

/** The status of a reply that is there to its last byte; null while some of it is missing. */
function statusOfWhole(received: Buffer): number | null {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd === -1) return null;
  const head = received.toString("latin1", 0, headEnd).toLowerCase();
  const length = /\r\ncontent-length: *(\d+)/.exec(head);
  const bodyAt = headEnd + 4;
  const whole =
    length === null
      ? received.subarray(bodyAt).equals(NO_CHUNKS) || endsWithLastChunk(received)
      : received.length >= bodyAt + Number(length[1]);
  return whole ? Number(head.slice(9, 12)) : null;
}

const NO_CHUNKS = Buffer.from("0\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

// Replies here are JSON, which holds no raw line breaks of this shape, and one request is out at a time.
function endsWithLastChunk(received: Buffer): boolean {
  return received.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
