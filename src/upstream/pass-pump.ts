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

type Moved = { by: "source" | "broken" | "client"; error?: unknown };
type Writer = WritableStreamDefaultWriter<Uint8Array>;

/**
 * Passes `source` on. `closes`: a source that breaks still closes the body in order, for the tap has told the client;
 * else the body breaks off, so that nobody takes half of it for the whole. `ended` never rejects, and does not wait for a
 * client that reads no further: it has resolved once the source is over or the attempt is stopped.
 */
export function pump<End>(
  source: Source,
  tap: Tap<End>,
  { closes, deps }: { closes: boolean; deps: Pick<PassDeps, "pipe" | "controller"> },
): { body: ReadableStream<Uint8Array>; ended: Promise<PumpEnd<End>> } {
  const { readable, writable } = deps.pipe();
  const writer = writable.getWriter();
  const { controller } = deps;
  let isMoving = true;
  // A client that leaves while the upstream is silent is noticed by its side of the pipe. Later, it may be the pump's own
  // breaking off that is noticed, which must not pass for the client's.
  writer.closed.catch(() => {
    if (isMoving) controller.abort();
  });
  const ended = Promise.race([move(source, writer, tap), stopOf(controller.signal)]).then((moved) => {
    isMoving = false;
    const { bytes, outcome } = tap.end(moved.by === "source" ? "clean" : "broken");
    if (moved.by === "client") controller.abort();
    if (moved.by !== "source") source.reader.cancel().catch(() => undefined);
    void finish(writer, bytes, moved.by === "source" || closes ? null : moved);
    return { outcome, by: moved.by };
  });
  return { body: readable, ended };
}

/** Resolves when the attempt is stopped, which a write to a client that reads no further would not notice. */
function stopOf(signal: AbortSignal): Promise<Moved> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve({ by: "broken", error: signal.reason })),
  );
}

async function move<End>({ head, reader }: Source, writer: Writer, tap: Tap<End>): Promise<Moved> {
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

/** The body's last bytes, and its end: in order, or broken off. */
async function finish(writer: Writer, bytes: readonly Uint8Array[], breaksOff: Moved | null): Promise<void> {
  try {
    for (const piece of bytes) await writer.write(piece);
    if (breaksOff === null) await writer.close();
    else await writer.abort(breaksOff.error);
  } catch {
    // The client left at the last moment: what the answer came to is known all the same.
  }
}
