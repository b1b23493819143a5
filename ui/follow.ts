/** Follows a run's log: all of its lines, then each new one, across lost connections, until the run has ended. */
import { ApiError, type Api } from "./api.ts";
import { parseLine, type LogLine } from "./model/line.ts";

/** Delays before a lost connection is opened again, ms; the last one repeats. */
const RECONNECT_MS = [200, 1_000, 3_000];

export type Follower = {
  /** Lines in the order of the log, as many as arrived together. */
  lines: (lines: LogLine[]) => void;
  /** Whether the connection is up. */
  connected: (isConnected: boolean) => void;
};

/** Resolves when the run has ended and `signal` has not aborted. Throws an ApiError if the gateway refuses. */
export async function follow(api: Api, runId: string, follower: Follower, signal: AbortSignal): Promise<void> {
  let last = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const path = `/runs/${encodeURIComponent(runId)}/events?after=${last}`;
      const body = await api.stream(path, signal);
      follower.connected(true);
      for await (const lines of batchesOf(body)) {
        failures = 0;
        last = lines.at(-1)?.seq ?? last;
        follower.lines(lines);
      }
      // The gateway ends the stream after the last event of a run that has ended.
      return;
    } catch (error) {
      follower.connected(false);
      if (signal.aborted || (error instanceof ApiError && error.status < 500)) throw error;
      await sleep(RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)] ?? 0);
      failures += 1;
    }
  }
}

/** The lines of each piece of a stream of server-sent events. Only `data` matters: a line has its number and its type. */
async function* batchesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<LogLine[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const texts = (rest + decoder.decode(read.value, { stream: true })).split("\n");
    rest = texts.pop() ?? "";
    const lines = texts.flatMap((text) => {
      const line = text.startsWith("data: ") ? parseLine(text.slice("data: ".length)) : null;
      return line === null ? [] : [line];
    });
    if (lines.length > 0) yield lines;
  }
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
