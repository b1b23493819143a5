/** A body whose pieces take their time: sends white space or a comment while none comes, so that no proxy cuts it. */
import { KEEP_ALIVE_MS } from "../../limits.ts";

const encoder = new TextEncoder();

/**
 * Streams `pieces`. A reader that leaves ends the stream, not the work behind it; a failure breaks the body off, so that
 * no client takes half an answer for a whole one.
 */
export function streamed(
  pieces: AsyncGenerator<string>,
  options: { keepAlive: string; failed: (error: unknown) => void },
): { body: ReadableStream<Uint8Array>; pumped: Promise<void> } {
  const { readable, writable } = new IdentityTransformStream();
  return { body: readable, pumped: pump(pieces, writable.getWriter(), options) };
}

async function pump(
  pieces: AsyncGenerator<string>,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  { keepAlive, failed }: { keepAlive: string; failed: (error: unknown) => void },
): Promise<void> {
  let left = false;
  const write = async (text: string): Promise<void> => {
    try {
      await writer.write(encoder.encode(text));
    } catch {
      // The reader has left, which is no failure of ours.
      left = true;
    }
  };
  const heartbeat = setInterval(() => {
    void write(keepAlive);
  }, KEEP_ALIVE_MS);
  try {
    for await (const piece of pieces) {
      if (left) return;
      if (piece !== "") await write(piece);
    }
    if (!left) await writer.close().catch(() => undefined);
  } catch (error) {
    if (!left) failed(error);
    await writer.abort(error).catch(() => undefined);
  } finally {
    clearInterval(heartbeat);
  }
}
