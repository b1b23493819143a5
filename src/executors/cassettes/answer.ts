/** Answers of an upstream as a tape has them: copied while they are read, and given again. */
import type { TapedAnswer } from "../../recordings/types.ts";
import { CASSETTE_CHUNKS_MAX, CASSETTE_LINE_BYTES_MAX } from "../../limits.ts";

const encoder = new TextEncoder();

/** The answer as a response, in the pieces in which it arrived. A body of one piece announces its length, as the upstream's did. */
export function playedResponse({ status, contentType, chunks }: TapedAnswer): Response {
  const headers: Record<string, string> = contentType === "" ? {} : { "content-type": contentType };
  const [only = ""] = chunks;
  if (chunks.length <= 1) {
    const bytes = encoder.encode(only);
    return new Response(bytes, { status, headers: { ...headers, "content-length": String(bytes.length) } });
  }
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks[at++];
      if (chunk === undefined) controller.close();
      else controller.enqueue(encoder.encode(chunk));
    },
  });
  return new Response(body, { status, headers });
}

/** The answer that an attempt is reading, copied. */
export class AnswerCopy {
  #status = 0;
  #contentType = "";
  #chunks: string[] | null = [];
  #bytes = 0;
  #decoder = newDecoder();

  /** The response with a body that is copied as it is read. It takes the place of an earlier one. */
  copied(response: Response): Response {
    this.#status = response.status;
    this.#contentType = response.headers.get("content-type") ?? "";
    this.#chunks = [];
    this.#bytes = 0;
    this.#decoder = newDecoder();
    const { body, status, headers } = response;
    if (body === null) return response;
    const reader = body.getReader();
    const copied = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        this.#add(value);
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(copied, { status, headers });
  }

  /** What was read of the last response; null = it is too long for a tape, or no text. */
  get answer(): TapedAnswer | null {
    if (this.#chunks === null) return null;
    try {
      // Throws if the text ends in the middle of a character.
      this.#decoder.decode();
    } catch {
      return null;
    }
    return { status: this.#status, contentType: this.#contentType, chunks: this.#chunks };
  }

  #add(chunk: Uint8Array): void {
    if (this.#chunks === null) return;
    this.#bytes += chunk.length;
    if (this.#bytes > CASSETTE_LINE_BYTES_MAX) return void (this.#chunks = null);
    let text: string;
    try {
      // A character that is cut by the end of a piece goes to the next one.
      text = this.#decoder.decode(chunk, { stream: true });
    } catch {
      return void (this.#chunks = null);
    }
    if (text === "") return;
    const last = this.#chunks.length - 1;
    if (last + 1 < CASSETTE_CHUNKS_MAX) this.#chunks.push(text);
    else this.#chunks[last] += text;
  }
}

function newDecoder(): TextDecoder {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
}
