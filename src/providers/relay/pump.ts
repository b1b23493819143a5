/** Moves an answer from its upstream to its client, at the client's pace, through an observer or past it. */
import type { ChunkReader } from "./batches.ts";
import { passRest } from "./native.ts";
import type { RelayDeps } from "./types.ts";

/** Observes the bytes of an answer; what it returns is written to the client. */
export type Tap<End> = {
  feed: (chunk: Uint8Array) => readonly Uint8Array[];
  /**
   * Once the rest of the answer may reach its client unread: what `feed` has kept back, to be sent before that. Null until
   * then. From then on, `feed` only observes, and what it returns is not written. Absent = never.
   */
  release?: () => Uint8Array | null;
  end: (how: "clean" | "broken") => { bytes: Uint8Array[]; outcome: End };
};

/** How the relay ended: at the source's end, because the source broke, or because the client left. */
export type PumpEnd<End> = { outcome: End; by: "source" | "broken" | "client" };

/** The bytes of an answer: those that were read ahead, then the rest. `release` gives the rest up: absent = cannot. */
export type Source = {
  head: readonly Uint8Array[];
  reader: ChunkReader;
  release?: () => ReadableStream<Uint8Array>;
};

/** How the source ended. `flushed`: when a writer can be had again, if the runtime has moved the rest. */
type Moved = { by: "source" | "broken" | "client"; error?: unknown; flushed?: Promise<unknown> };
type Writer = WritableStreamDefaultWriter<Uint8Array>;

export type PumpOptions<End> = {
  /**
   * Whether the body is closed in order; else its connection breaks off, so that no client takes half an answer for the
   * whole. Called once, at the end, with the tap's outcome and what ended the source.
   */
  closes: (end: PumpEnd<End>) => boolean;
  deps: Pick<RelayDeps, "pipe" | "controller" | "lookTimer">;
};

/**
 * Relays `source`. `ended` never rejects, and does not wait for a client that stops reading: it resolves once the source
 * has ended or the attempt is stopped.
 */
export function pump<End>(
  source: Source,
  tap: Tap<End>,
  { closes, deps }: PumpOptions<End>,
): { body: ReadableStream<Uint8Array>; ended: Promise<PumpEnd<End>> } {
  const { readable, writable } = deps.pipe();
  const writer = writable.getWriter();
  const { controller } = deps;
  let isMoving = true;
  // A client that leaves while the upstream is silent is noticed by its side of the pipe. Later, this may be
  // the pump's own abort, which must not be taken for the client's.
  writer.closed.catch(() => {
    if (isMoving) controller.abort();
  });
  const moving = async (): Promise<Moved> => {
    const moved = await Promise.race([move(source, writer, tap), stopOf(controller.signal)]);
    isMoving = false;
    if (moved.by !== "released") return moved;
    writer.releaseLock();
    return await passRest(moved.rest, writable, { feed: tap.feed, controller, timer: deps.lookTimer });
  };
  const ended = moving().then((moved) => {
    const { bytes, outcome } = tap.end(moved.by === "source" ? "clean" : "broken");
    if (moved.by === "client") controller.abort();
    const { flushed } = moved;
    if (moved.by !== "source" && flushed === undefined) source.reader.cancel().catch(() => undefined);
    const end: PumpEnd<End> = { outcome, by: moved.by };
    const breaksOff = closes(end) ? null : moved;
    if (flushed === undefined) void finish(writer, bytes, breaksOff);
    else void flushed.then(() => finish(writable.getWriter(), bytes, breaksOff));
    return end;
  });
  return { body: readable, ended };
}

/** Resolves when the attempt is stopped, which a write to a client that reads no further would not notice. */
function stopOf(signal: AbortSignal): Promise<Moved> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve({ by: "broken", error: signal.reason })),
  );
}

/** The source's bytes pass `tap` until its end, or until the tap releases the rest. */
async function move<End>(
  { head, reader, release }: Source,
  writer: Writer,
  tap: Tap<End>,
): Promise<Moved | { by: "released"; rest: ReadableStream<Uint8Array> }> {
  const written = async (pieces: readonly Uint8Array[]): Promise<boolean> => {
    try {
      for (const piece of pieces) await writer.write(piece);
      return true;
    } catch {
      return false;
    }
  };
  for (const chunk of head) if (!(await written(tap.feed(chunk)))) return { by: "client" };
  for (;;) {
    let chunk: ReadableStreamReadResult<Uint8Array>;
    try {
      chunk = await reader.read();
    } catch (error) {
      return { by: "broken", error };
    }
    if (chunk.done) return { by: "source" };
    const pieces = tap.feed(chunk.value);
    try {
      for (const piece of pieces) await writer.write(piece);
    } catch {
      return { by: "client" };
    }
    const kept = release === undefined ? null : (tap.release?.() ?? null);
    if (release === undefined || kept === null) continue;
    return (await written([kept])) ? { by: "released", rest: release() } : { by: "client" };
  }
}

/** The body's last bytes, and its end: in order, or broken off. */
async function finish(writer: Writer, bytes: readonly Uint8Array[], breaksOff: Moved | null): Promise<void> {
  try {
    for (const piece of bytes) await writer.write(piece);
    if (breaksOff === null) await writer.close();
    else await writer.abort(breaksOff.error ?? new Error("the upstream ended its answer before it was whole"));
  } catch {
    // The client left at the last moment: the outcome of the answer is known nevertheless.
  }
}
