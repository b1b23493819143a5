/** Calls of lanes, some at a time: a wide run has hundreds of them. */
import { LANES_CALLED_AT_ONCE } from "../../limits.ts";
import { laneOf, type Objects } from "../address.ts";

/** Calls lanes, by number. Returns how each call has ended, in their order; it never rejects. */
export async function callLanes<Result>(
  lanes: readonly number[],
  call: (lane: number) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const ended: PromiseSettledResult<Result>[] = [];
  const queue = lanes.entries();
  // All take from one queue: a lane that cannot be reached holds one place, and not those behind it.
  const callNext = async (): Promise<void> => {
    for (const [at, lane] of queue) [ended[at]] = await Promise.allSettled([call(lane)]);
  };
  await Promise.all(Array.from({ length: Math.min(LANES_CALLED_AT_ONCE, lanes.length) }, callNext));
  return ended;
}

/** Starts lanes of a run. Resolves with how many could not be reached: the run's alarm starts those again. */
export async function startLanes(objects: Objects, runId: string, lanes: readonly number[]): Promise<number> {
  const started = await callLanes(lanes, async (lane) => laneOf(objects, runId, lane).start(runId, lane));
  return started.filter(({ status }) => status === "rejected").length;
}
