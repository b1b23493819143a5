import { parseEvent, type WatchEvent } from "./event.ts";

/** Where a reader of a run's events stands. */
export class EventSequence {
  /** Number of the last event that was handed out; 0 = none. */
  lastSeq = 0;
  /** The run has ended: calls in flight may still end, no other starts. */
  runClosed = false;

  /** The events among these lines that were not handed out before; null if a line is no event. */
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
