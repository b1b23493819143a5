/** Streams an answer as server-sent events: one event each time the reader asks for one, paced, cut short if told so. */
import type { Pace } from "./simulated-model.ts";
import { type Timer, wait } from "./simulated-wait.ts";

/** One event's text, with the blank line that ends it, and where in the answer it stands. */
export type Frame = { text: string; part: "opening" | "piece" | "closing" };

/** An event without a name, as OpenAI's completions have them. */
export function dataFrame(part: Frame["part"], value: unknown): Frame {
  return { text: `data: ${JSON.stringify(value)}\n\n`, part };
}

/** An event named by its own type, as Responses and Anthropic have them. */
export function typedFrame(part: Frame["part"], type: string, fields: Record<string, unknown>): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`, part };
}

export const DONE: Frame = { text: "data: [DONE]\n\n", part: "closing" };

/** Most events a stream holds ready: none, so that its source works no faster than its reader. */
const EVENTS_AHEAD = 0;

/** Once the signal aborts the reader's next read rejects with its reason; a reader that cancels stops the timer. */
export function streamResponse(frames: Iterable<Frame>, pace: Pace, timer: Timer, signal: AbortSignal): Response {
  const left = frames[Symbol.iterator]();
  const cancelled = new AbortController();
  const over = AbortSignal.any([signal, cancelled.signal]);
  const encoder = new TextEncoder();
  let pieces = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        over.throwIfAborted();
        const { value: frame } = left.next();
        if (frame === undefined || breaksBefore(frame, pieces, pace)) {
          controller.close();
          return;
        }
        if (frame.part === "piece" && pieces++ > 0) await wait(pace.chunkMs, timer, over);
        controller.enqueue(encoder.encode(frame.text));
      },
      cancel() {
        cancelled.abort();
      },
    },
    { highWaterMark: EVENTS_AHEAD },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

/** A stream that is to break does so before its end even if it has fewer pieces than that. */
function breaksBefore(frame: Frame, pieces: number, { breakAfter }: Pace): boolean {
  if (breakAfter === null) return false;
  return frame.part === "closing" || (frame.part === "piece" && pieces === breakAfter);
}

/**
 * Cuts a text into at most `piecesMax` pieces of nearly the same number of words, or of characters where it has few
 * words. Joined they are the text; none is empty.
 */
export function split(text: string, piecesMax: number): string[] {
  const words = text.match(/\s*\S+|\s+$/g) ?? [];
  const units = words.length * 2 >= piecesMax ? words : Array.from(text);
  const pieces = Math.min(piecesMax, units.length);
  return Array.from({ length: pieces }, (_, index) => {
    const start = Math.floor((index * units.length) / pieces);
    return units.slice(start, Math.floor(((index + 1) * units.length) / pieces)).join("");
  });
}
