/** Reads a run's log so far, once. */
import type { WatchEvent } from "./event.ts";
import { ask, type Fetch, noLog, readBody, type Source } from "./gateway.ts";
import { LineSplitter } from "./lines.ts";
import { EventSequence } from "./sequence.ts";

type Reading = { fetch: Fetch; signal: AbortSignal; onEvents(events: WatchEvent[]): void | Promise<void> };

/** Delivers the events so far. Returns what went wrong, or null. */
export async function readLog(source: Source, { fetch, signal, onEvents }: Reading): Promise<string | null> {
  const path = `/runs/${encodeURIComponent(source.runId)}/log`;
  const answer = await ask(source.gateway, { path, type: "application/x-ndjson", signal }, fetch);
  if (!answer.ok) return answer.problem.message;
  const splitter = new LineSplitter();
  const sequence = new EventSequence();
  const handOut = async (lines: string[]): Promise<boolean> => {
    const full = lines.filter((line) => line !== "");
    const fresh = sequence.fresh(full);
    if (fresh !== null && fresh.length > 0) await onEvents(fresh);
    return fresh !== null;
  };
  for await (const read of readBody(answer.response)) {
    if ("cause" in read) return `The connection to ${source.gateway.url} is lost: ${read.cause}.`;
    if (!(await handOut(splitter.push(read.chunk)))) return noLog(source);
  }
  return (await handOut([splitter.rest()])) ? null : noLog(source);
}
