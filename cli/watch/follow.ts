/**
 * Delivers a run's events in order, each once, over as many connections as necessary: a new connection resumes after the last
 * delivered event.
 */
import { createParser } from "eventsource-parser";
import type { WatchEvent } from "./event.ts";
import { type Fetch, readBody } from "../gateway/requests.ts";
import { askFor, noLog, type Source } from "./source.ts";
import { EventSequence } from "./sequence.ts";

/** Delay before the first reconnection, ms: it doubles up to the maximum until an event arrives. */
const RECONNECT_MS_MIN = 200;
const RECONNECT_MS_MAX = 5_000;
/** Silence after which a connection counts as lost, ms: several times the gateway's interval between its comments. */
const SILENCE_MS = 60_000;
/** Longest event, UTF-16 units: above the largest request, and so above any client event. */
const EVENT_CHARS_MAX = 64 * 1024 * 1024;

export type FollowDeps = {
  fetch: Fetch;
  /** Resolves after the time, or at once when the signal aborts. */
  sleep(delayMs: number, signal: AbortSignal): Promise<void>;
  /** Default 60,000. */
  silenceMs?: number;
};

/** Callbacks of the follower. */
export type Listener = {
  /** New events; the follower reads more when this has settled. */
  events(events: WatchEvent[]): void | Promise<void>;
  connected(): void;
  /** The connection is lost, or a reconnection failed; the next attempt follows after `delayMs`. */
  lost(why: string, delayMs: number): void;
};

export type Ending = { ended: "run" | "stopped" } | { ended: "problem"; message: string };

/** Follows the run until it has ended, the signal aborts, or a problem occurs that is not transient. */
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
    if (problem !== null && (!problem.isTransient || !everConnected))
      return { ended: "problem", message: problem.message };
    listener.lost(problem?.message ?? "The stream ended before the run did.", delayMs);
    await deps.sleep(delayMs, signal);
    if (signal.aborted) return { ended: "stopped" };
    delayMs = Math.min(2 * delayMs, RECONNECT_MS_MAX);
  }
}

type Reading = { listener: Listener; signal: AbortSignal; sequence: EventSequence };

/** Reads one connection to its end; null if the server ended it. */
async function readStream(
  source: Source,
  { fetch, silenceMs = SILENCE_MS }: FollowDeps,
  { listener, signal, sequence }: Reading,
): Promise<{ message: string; isTransient: boolean } | null> {
  // After a sleep of the machine, or if a router dropped the connection, no more data arrives and no error is reported.
  const silence = new AbortController();
  const watchdog = setTimeout(() => silence.abort(new Error(`no data for ${silenceMs / 1000} s`)), silenceMs);
  try {
    const either = AbortSignal.any([signal, silence.signal]);
    const headers = resumeHeaders(sequence.lastSeq);
    const answer = await askFor("events", source, { fetch, headers, signal: either });
    if (!answer.ok) return answer.problem;
    listener.connected();
    const dataOf = eventReader();
    for await (const read of readBody(answer.response)) {
      watchdog.refresh();
      if ("cause" in read) return { message: `Lost ${source.gateway.url}: ${read.cause}.`, isTransient: true };
      const data = dataOf(read.chunk);
      const fresh = data === null ? null : sequence.fresh(data);
      if (fresh === null) return { message: noLog(source), isTransient: false };
      if (fresh.length > 0) await listener.events(fresh);
    }
    return null;
  } finally {
    clearTimeout(watchdog);
  }
}

/**
 * Reads one stream of server-sent events. Each chunk returns the `data` of the events that it completes: the event's
 * number and type are in that JSON, too. Returns null once an event exceeds `charsMax`, and from then on.
 */
export function eventReader(charsMax: number = EVENT_CHARS_MAX): (chunk: Uint8Array) => string[] | null {
  const decoder = new TextDecoder();
  let data: string[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: charsMax,
    onEvent: (event) => data.push(event.data),
    // Unknown fields are reported here, too; the standard says to ignore them.
    onError: (error) => {
      isTooLong ||= error.type === "max-buffer-size-exceeded";
    },
  });
  return (chunk) => {
    if (isTooLong) return null;
    parser.feed(decoder.decode(chunk, { stream: true }));
    const complete = data;
    data = [];
    return isTooLong ? null : complete;
  };
}

function resumeHeaders(lastSeq: number): Record<string, string> {
  return lastSeq === 0 ? {} : { "last-event-id": String(lastSeq) };
}
