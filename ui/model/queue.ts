/** How many calls of a run are queued and in flight, and what the queued ones wait for: all of one moment. */
import { isRecord, numberOf, objectOf } from "./line.ts";
import { addedUp, waitsIn, type Wait } from "./waits.ts";

export type QueueLook = { queued: number; inFlight: number; waits: Wait[] };

/** Reads `queue` of a run's document; null = the gateway has not said it. */
export function readQueue(document: Readonly<Record<string, unknown>>): QueueLook | null {
  const { queue } = document;
  if (!isRecord(queue)) return null;
  const look = objectOf(document, "queue");
  return { queued: numberOf(look, "queued"), inFlight: numberOf(look, "in_flight"), waits: addedUp(waitsIn(look)) };
}
