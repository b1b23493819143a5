import { parseEvent, type WatchEvent } from "./event.ts";

/** The position of a reader in a run's events. */
export class EventSequence {
  /** Number of the last delivered event; 0 if none. */
  lastSeq = 0;
  /** Whether the run has ended: calls in flight may still end, no others start. */
  runClosed = false;

  /** The events in these lines that were not delivered before; null if a line is not an event. */
  fresh(lines: readonly string[]): WatchEvent[] | null {
    const fresh: WatchEvent[] = [];
    for (const line of lines) {
      const event = parseEvent(line);
      if (event === null) return null;
      if (event.seq <= this.lastSeq) continue;
      this.lastSeq = event.seq;
      this.runClosed ||= event.event_type === "run_closed";
      fresh.push(event);
    }
    return fresh;
  }
}
