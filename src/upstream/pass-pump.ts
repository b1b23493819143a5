/** Moves an answer from its upstream to its client, at the client's pace, through something that watches it. */
import type { PassDeps } from "./pass-job.ts";

/** Watches what passes: what it returns is what goes on. */
export type Tap<End> = {
  feed: (chunk: Uint8Array) => Uint8Array[];
  end: (how: "clean" | "broken") => { bytes: Uint8Array[]; outcome: End };
};

/** How the passing ended: at the source's end, because the source broke, or because the client left. */
export type PumpEnd<End> = { outcome: End; by: "source" | "broken" | "client" };

/** Where an answer comes from: what of it was read ahead, then the rest. */
export type Source = { head: readonly Uint8Array[]; reader: ReadableStreamDefaultReader<Uint8Array> };

/**
 * Passes `source` on. `closes`: a source that breaks still closes the body in order, for the tap has told the client;
 * else the body breaks off, so that nobody takes half of it for the whole. `ended` never rejects.
 */
export function pump<End>(
  source: Source,
  tap: Tap<End>,
  { closes, deps }: { closes: boolean; deps: Pick<PassDeps, "pipe" | "controller"> },
): { body: ReadableStream<Uint8Array>; ended: Promise<PumpEnd<End>> } {
  const { readable, writable } = deps.pipe();
  const writer = writable.getWriter();
  const { reader } = source;
  let isMoving = true;
  // A client that leaves while the upstream is silent is noticed by its side of the pipe. Later, it may be the pump's own
  // breaking off that is noticed, which must not pass for the client's.
  writer.closed.catch(() => {
    if (isMoving) deps.controller.abort();
  });
  const ended = move(source, writer, tap).then(async ({ by, error }) => {
    isMoving = false;
    const { bytes, outcome } = tap.end(by === "source" ? "clean" : "broken");
    if (by === "client") {
      deps.controller.abort();
      await reader.cancel().catch(() => undefined);
      return { outcome, by };
    }
    try {
      for (const piece of bytes) await writer.write(piece);
      if (by === "source" || closes) await writer.close();
      else await writer.abort(error);
    } catch {
      // The client left at the last moment: what the answer came to is known all the same.
    }
    return { outcome, by };
  });
  return { body: readable, ended };
}

async function move<End>(
  { head, reader }: Source,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  tap: Tap<End>,
): Promise<{ by: PumpEnd<End>["by"]; error?: unknown }> {
  const goesOn = async (chunk: Uint8Array): Promise<boolean> => {
    try {
      for (const piece of tap.feed(chunk)) await writer.write(piece);
      return true;
    } catch {
      return false;
    }
  };
  for (const chunk of head) if (!(await goesOn(chunk))) return { by: "client" };
  for (;;) {
    let chunk: ReadableStreamReadResult<Uint8Array>;
    try {
      chunk = await reader.read();
    } catch (error) {
      return { by: "broken", error };
    }
    if (chunk.done) return { by: "source" };
    if (!(await goesOn(chunk.value))) return { by: "client" };
  }
}
