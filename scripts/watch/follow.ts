/**
 * Hands out a run's events in order, each once, over as many connections as it takes: a new one asks for what comes
 * after the last event that was handed out.
 */
import type { WatchEvent } from "./event.ts";
import { ask, type Fetch, noLog, type Problem, readBody, type Source } from "./gateway.ts";
import { EventSequence } from "./sequence.ts";
import { SseParser } from "./sse.ts";

/** Delay before the first new connection after a loss, ms: it doubles up to the longest, until an event arrives. */
const RECONNECT_MS_MIN = 200;
const RECONNECT_MS_MAX = 5_000;
/** Silence after which a connection counts as lost, ms: several times the gateway's interval between its comments. */
const SILENCE_MS = 60_000;

export type FollowDeps = {
  fetch: Fetch;
  /** Resolves after the time, or at once when the signal aborts. */
  sleep(delayMs: number, signal: AbortSignal): Promise<void>;
  /** Default 60,000. */
  silenceMs?: number;
};

/** What the follower tells while it runs. */
export type Listener = {
  /** New events; more are read when this has settled. */
  events(events: WatchEvent[]): void | Promise<void>;
  connected(): void;
  /** The connection is lost, or a new one failed; the next try comes after `delayMs`. */
  lost(why: string, delayMs: number): void;
};

export type Ending = { ended: "run" | "stopped" } | { ended: "problem"; message: string };

/** Follows the run until it has ended, the signal aborts, or something will not get better by trying again. */
export async function follow(
  source: Source,
  deps: FollowDeps,
  { listener, signal }: { listener: Listener; signal: AbortSignal },
): Promise<Ending> {
  const sequence = new EventSequence();
  let everConnected = false;
  let delayMs = RECONNECT_MS_MIN;
  const watched: Listener = {
    lost: (why, delayMs) => listener.lost(why, delayMs),
    connected: () => {
      everConnected = true;
      listener.connected();
    },
    events: (events) => {
      delayMs = RECONNECT_MS_MIN;
      return listener.events(events);
    },
  };
  for (;;) {
    const problem = await readStream(source, deps, { listener: watched, signal, sequence });
    if (signal.aborted) return { ended: "stopped" };
    if (problem === null && sequence.runClosed) return { ended: "run" };
    if (problem !== null && (!problem.passing || !everConnected)) return { ended: "problem", message: problem.message };
    listener.lost(problem?.message ?? "The stream ended before the run did.", delayMs);
    await deps.sleep(delayMs, signal);
    if (signal.aborted) return { ended: "stopped" };
    delayMs = Math.min(2 * delayMs, RECONNECT_MS_MAX);
  }
}

type Reading = { listener: Listener; signal: AbortSignal; sequence: EventSequence };

/** Reads one connection to its end; null when it ended by itself. */
async function readStream(
  source: Source,
  { fetch, silenceMs = SILENCE_MS }: FollowDeps,
  { listener, signal, sequence }: Reading,
): Promise<Problem | null> {
  // A machine that slept, or a router that forgot the connection, leaves one that never says another word.
  const silence = new AbortController();
  const watchdog = setTimeout(() => silence.abort(new Error(`not a word for ${silenceMs / 1000} s`)), silenceMs);
  try {
    const request = {
      path: `/runs/${encodeURIComponent(source.runId)}/events`,
      type: "text/event-stream",
      headers: resumeHeaders(sequence.lastSeq),
      signal: AbortSignal.any([signal, silence.signal]),
    };
    const answer = await ask(source.gateway, request, fetch);
    if (!answer.ok) return answer.problem;
    listener.connected();
    const parser = new SseParser();
    for await (const read of readBody(answer.response)) {
      watchdog.refresh();
      if ("cause" in read) return { message: `Lost ${source.gateway.url}: ${read.cause}.`, passing: true };
      const fresh = sequence.fresh(parser.push(read.chunk));
      if (fresh === null) return { message: noLog(source), passing: false };
      if (fresh.length > 0) await listener.events(fresh);
    }
    return null;
  } finally {
    clearTimeout(watchdog);
  }
}

function resumeHeaders(lastSeq: number): Record<string, string> {
  return lastSeq === 0 ? {} : { "last-event-id": String(lastSeq) };
}
