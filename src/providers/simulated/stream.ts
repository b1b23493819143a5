/** Streams an answer as server-sent events: one event for each read, at a pace, and cut short if the model's parameters require it. */
import type { Pace } from "./model.ts";

/** The text of one event, with the blank line that ends it, and its part in the answer. */
export type Frame = { text: string; part: "opening" | "delta" | "closing" };

/** An event without a name, as in OpenAI's completions. */
export function dataFrame(part: Frame["part"], value: unknown): Frame {
  return { text: `data: ${JSON.stringify(value)}\n\n`, part };
}

/** An event named by its type, as in Responses and Anthropic's messages. */
export function typedFrame(part: Frame["part"], type: string, fields: Record<string, unknown>): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`, part };
}

export const DONE: Frame = { text: "data: [DONE]\n\n", part: "closing" };

/** Events that are written before they are read: none, so that the source is no faster than its reader. */
const EVENTS_AHEAD = 0;

/** Once the signal aborts, the next read rejects with its reason. A reader that cancels stops the timer. */
export function streamResponse(frames: Iterable<Frame>, pace: Pace, timer: Timer, signal: AbortSignal): Response {
  const left = frames[Symbol.iterator]();
  const cancelled = new AbortController();
  const over = AbortSignal.any([signal, cancelled.signal]);
  const encoder = new TextEncoder();
  let deltas = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        over.throwIfAborted();
        const { value: frame } = left.next();
        if (frame === undefined || breaksBefore(frame, deltas, pace)) {
          controller.close();
          return;
        }
        if (frame.part === "delta" && deltas++ > 0) await wait(pace.chunkMs, timer, over);
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

/** A stream with `break_after` never reaches its end, even if it has fewer deltas. */
function breaksBefore(frame: Frame, deltas: number, { breakAfter }: Pace): boolean {
  if (breakAfter === null) return false;
  return frame.part === "closing" || (frame.part === "delta" && deltas === breakAfter);
}

/**
 * Cuts a text into at most `deltasMax` deltas with nearly the same number of words each, or of characters if it has few
 * words. Joined, they are the text; none is empty.
 */
export function split(text: string, deltasMax: number): string[] {
  const words = text.match(/\s*\S+|\s+$/g) ?? [];
  const units = words.length * 2 >= deltasMax ? words : Array.from(text);
  const deltas = Math.min(deltasMax, units.length);
  return Array.from({ length: deltas }, (_, index) => {
    const start = Math.floor((index * units.length) / deltas);
    return units.slice(start, Math.floor(((index + 1) * units.length) / deltas)).join("");
  });
}

/** Calls `elapsed` after `ms`, unless what it returns is called first. */
export type Timer = (ms: number, elapsed: () => void) => () => void;

/** Resolves after `ms`; rejects with the signal's reason once it aborts, and stops the timer. */
export async function wait(ms: number, timer: Timer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms === 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stopTimer = timer(ms, resolve);
  const leave = (): void => {
    stopTimer();
    reject(signal.reason);
  };
  signal.addEventListener("abort", leave, { once: true });
  await promise;
  signal.removeEventListener("abort", leave);
}
