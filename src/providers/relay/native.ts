/**
 * Lets the runtime move the rest of a stream to its client, and observes a copy of it. No byte waits for JavaScript, and
 * none can be changed.
 */
import { COPY_REST_MS_MAX } from "../../limits.ts";
import type { StartTimer } from "../exchange.ts";
import { readLate } from "./late-copy.ts";

export type NativeDeps = {
  controller: AbortController;
  /** Times the looks at the copy. */
  timer: StartTimer;
};

/** How the rest ended, and when its last byte has gone to the client, or the client has left. */
export type NativeEnd = { by: "source" | "broken" | "client"; error?: unknown; flushed: Promise<unknown> };

/**
 * Moves `source` into `writable`, which stays open, and feeds its copy. Resolves once all that arrived has been fed: at the
 * end of the source, or when it broke, its client left or the attempt was stopped. Never rejects.
 */
export async function passRest(
  source: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  { feed, controller, timer }: NativeDeps & { feed: (chunk: Uint8Array) => void },
): Promise<NativeEnd> {
  const { signal } = controller;
  const [original, copy] = source.tee();
  // A cancelled branch ends only together with the other one, so the client's is left to the end of the source.
  const options = { preventClose: true, preventAbort: true, preventCancel: true };
  const piped = original.pipeTo(writable, options).then(
    () => ({ by: "source" as const }),
    (error: unknown) => ({ by: "broken" as const, error }),
  );
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
  const observed = readLate(copy, { feed, timer, over: Promise.race([piped, stopped]) });
  const first = await Promise.race([piped, stopped.then(() => null)]);
  // All that had arrived before the end, the break or the stop counts. A stopped source breaks at once.
  if (first?.by === "source") {
    await observed;
    return { ...first, flushed: piped };
  }
  const rest = timed(observed, timer);
  // A pipe ends early because its source broke, which ends the copy too, or because its client has left.
  if (first !== null && !signal.aborted && isOpen(writable) && (await rest())) return { ...first, flushed: piped };
  const hasLeft = first !== null && !signal.aborted;
  controller.abort();
  await rest();
  return { by: hasLeft ? "client" : "broken", error: signal.reason, flushed: piped };
}

/** Whether nothing is known to have closed the client's side. */
function isOpen(writable: WritableStream<Uint8Array>): boolean {
  const writer = writable.getWriter();
  const open = writer.desiredSize !== null;
  writer.releaseLock();
  return open;
}

/** Waits for the end of what ends soon; the result says whether it has ended in time. */
function timed(work: Promise<unknown>, timer: StartTimer): () => Promise<boolean> {
  return () =>
    new Promise((resolve) => {
      const stop = timer(COPY_REST_MS_MAX, () => resolve(false));
      void work.then(() => {
        stop();
        resolve(true);
      });
    });
}
