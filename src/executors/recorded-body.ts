/** The body of a relayed answer that is recorded while it goes to its client. */
import { RECORDED_CHARS_MAX } from "../limits.ts";

export type BodyRecorder = {
  /** Resolves with whether the upstream has sent all of the answer. Never rejects. */
  complete: Promise<boolean>;
  /** Called once, with the whole body, or null if it is not to be recorded. The stream ends after it. Never rejects. */
  ended: (text: string | null) => Promise<void>;
};

/** A body as text; null if it is not UTF-8, or too long to be recorded. */
export function bodyText(bytes: Uint8Array): string | null {
  if (bytes.length > RECORDED_CHARS_MAX) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Passes a stream on and collects it. A client that closes the connection after the last event has not left too early: what
 * remains is read for it.
 */
export function recordedStream(source: ReadableStream<Uint8Array>, recorder: BodyRecorder): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const collected = new Collected();
  let isComplete = false;
  void recorder.complete.then((complete) => (isComplete = complete));
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          collected.add(value);
          return controller.enqueue(value);
        }
      } catch (error) {
        await recorder.ended(null);
        return controller.error(error);
      }
      await recorder.ended((await recorder.complete) ? collected.text() : null);
      controller.close();
    },
    async cancel(reason) {
      if (!isComplete) await reader.cancel(reason).catch(() => undefined);
      else await drain(reader, collected);
      await recorder.ended(isComplete ? collected.text() : null);
    },
  });
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>, collected: Collected): Promise<void> {
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) collected.add(next.value);
  } catch {
    collected.giveUp();
  }
}

/** The bytes so far, up to the size of what is recorded. */
class Collected {
  #chunks: Uint8Array[] | null = [];
  #size = 0;

  add(chunk: Uint8Array): void {
    this.#size += chunk.length;
    if (this.#size > RECORDED_CHARS_MAX) this.giveUp();
    // The writer may use its buffer again.
    else this.#chunks?.push(chunk.slice());
  }

  giveUp(): void {
    this.#chunks = null;
  }

  text(): string | null {
    if (this.#chunks === null) return null;
    const bytes = new Uint8Array(this.#size);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bodyText(bytes);
  }
}
