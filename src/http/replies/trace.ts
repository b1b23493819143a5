/** A run's log as the text of a trace, piece by piece: a log of any length is never held whole. */
import type { EventLine } from "../../log/events.ts";
import { Trace } from "../../log/trace.ts";

/** The text of one JSON object. White space may come between its pieces. */
export async function* traceText(runId: string, pages: AsyncIterable<EventLine[]>): AsyncGenerator<string> {
  const trace = new Trace(runId);
  let separator = "\n";
  yield `{"displayTimeUnit":"ms","traceEvents":[`;
  for await (const page of pages) {
    const events = page.flatMap(({ event }) => trace.eventsOf(event));
    if (events.length === 0) continue;
    yield separator + events.map((event) => JSON.stringify(event)).join(",\n");
    separator = ",\n";
  }
  yield "\n]}\n";
}
