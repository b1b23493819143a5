/** Time in round trips to the gateway: a second of a quiet machine, and as much more as everything takes on a busy one. */
import { expect } from "vitest";
import type { RunAccess } from "./world.ts";

/** One after another, so many requests take a second or more. A heartbeat, or a lease, takes as long as thousands. */
const SECOND_IN_REQUESTS = 500;

/** Waits until a figure is reached, for at most as long as a second's requests take. */
export async function reachedWithinSecond(run: RunAccess, figure: () => number, expected: number): Promise<void> {
  for (let at = 0; at < SECOND_IN_REQUESTS && figure() !== expected; at++) await run.send("/run");
  expect(figure()).toBe(expected);
}
