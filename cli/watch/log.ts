/** Reads a run's log so far, once. */
import { linesOf, SENT_LINE_BYTES_MAX, textOfLine } from "../text/lines.ts";
import type { WatchEvent } from "./event.ts";
import { type Fetch, readBody } from "../gateway/requests.ts";
import { askFor, noLog, type Source } from "./source.ts";
import { EventSequence } from "./sequence.ts";

type Reading = { fetch: Fetch; signal: AbortSignal; onEvents(events: WatchEvent[]): void | Promise<void> };

/** Delivers the events so far. Returns what went wrong, or null. */
export async function readLog(source: Source, { fetch, signal, onEvents }: Reading): Promise<string | null> {
  const answer = await askFor("log", source, { fetch, signal });
  if (!answer.ok) return answer.problem.message;
  const lost: string[] = [];
  const sequence = new EventSequence();
  for await (const line of linesOf(chunksOf(answer.response, lost), SENT_LINE_BYTES_MAX)) {
    // What a lost connection has cut off is no line.
    if (lost.length > 0) break;
    const fresh = sequence.fresh([textOfLine(line)]);
    if (fresh === null) return noLog(source);
    if (fresh.length > 0) await onEvents(fresh);
  }
  const [cause] = lost;
  return cause === undefined ? null : `The connection to ${source.gateway.url} is lost: ${cause}.`;
}

/** The chunks of a body, to its end or to where the connection is lost: then its cause is added to `lost`. */
async function* chunksOf(response: Response, lost: string[]): AsyncGenerator<Uint8Array> {
  for await (const read of readBody(response)) {
    if ("cause" in read) lost.push(read.cause);
    else yield read.chunk;
  }
}
