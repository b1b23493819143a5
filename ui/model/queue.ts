/** How many calls of a run are queued and in flight, and what the queued ones wait for: all of one moment. */
import { narrowingIn } from "./narrowing.ts";
import { isRecord, numberOf, objectOf } from "./line.ts";
import { addedUp, waitsIn, type Wait } from "./waits.ts";

/** `narrowing`: what keeps a group narrow, in words; null = nothing. */
export type QueueLook = { queued: number; inFlight: number; waits: Wait[]; narrowing: string | null };

/** Reads `queue` of a run's document; null = the gateway has not said it. */
export function readQueue(document: Readonly<Record<string, unknown>>): QueueLook | null {
  const { queue } = document;
  if (!isRecord(queue)) return null;
  const look = objectOf(document, "queue");
  const [queued, inFlight] = [numberOf(look, "queued"), numberOf(look, "in_flight")];
  return { queued, inFlight, waits: addedUp(waitsIn(look)), narrowing: narrowingIn(look) };
}
