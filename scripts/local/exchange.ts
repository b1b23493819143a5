/**
 * Whether an HTTP/1.1 connection has a request under way, judged by the bytes that pass. A gateway that stops waits for
 * such connections and closes the others. A wrong guess costs one connection its last answer, never a call: what a run has
 * begun goes on after a restart.
 */

/** Bytes of an answer's first piece in which its headers are looked for. The gateway's headers are under 2 KB. */
const HEAD_BYTES = 4_096;
/** Ends a chunked answer: alone, or after the line end of the chunk before. A header may end in `0` as well. */
const LAST_CHUNK = /(?:^|\r\n)0\r\n\r\n$/;
/** Bytes of a piece in which the last chunk is looked for: one more than it has, so that `^` matches only a whole piece. */
const TAIL_BYTES = 8;

export class Exchange {
  #state: "idle" | "waiting" | "streaming" = "idle";

  /** True from a request's first byte to its answer's last. */
  get isUnderWay(): boolean {
    return this.#state !== "idle";
  }

  /** The client has sent bytes: a request, or more of one. */
  clientSent(): void {
    if (this.#state === "idle") this.#state = "waiting";
  }

  /** The server has sent a piece of an answer. One whose headers announce its length follows them at once. */
  serverSent(piece: Buffer): void {
    if (this.#state === "waiting") {
      const head = piece.toString("latin1", 0, HEAD_BYTES);
      this.#state = /^transfer-encoding:\s*chunked/im.test(head) ? "streaming" : "idle";
    }
    if (
      this.#state === "streaming" &&
      LAST_CHUNK.test(piece.toString("latin1", Math.max(0, piece.length - TAIL_BYTES)))
    ) {
      this.#state = "idle";
    }
  }
}
