/** What Workflow instances have done in a volley, and how Cloudflare has them run again after a loss. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "./client.ts";
import type { KillWorld } from "./world.ts";

/** `calls`: made by the instance of a run before the first kill; `resumed`: how often it ran again after a kill. */
export type Instances = { calls: number; resumed: number };

type Subject = { client: Client; runId: string; instances: Instances };

/** Attributes all calls so far to the instances, if no lane has begun yet. */
export async function noteInstances(world: KillWorld, subjects: readonly Subject[]): Promise<void> {
  const begun = await world.executors();
  if (begun === null || begun.lanes > 0) return;
  for (const { client, instances } of subjects)
    instances.calls = world.provider.sendsOf(client.plan.name).reduce((sum, { length }) => sum + length, 0);
}

/** Has the instances of all runs whose batch is on its way run again. Does nothing once the volley is over. */
export async function resumeInstances(
  world: KillWorld,
  subjects: readonly Subject[],
  { afterMs, over }: { afterMs: number; over: AbortSignal },
): Promise<void> {
  await sleep(afterMs, undefined, { signal: over }).catch(() => undefined);
  for (const { client, runId, instances } of subjects) {
    if (over.aborted) return;
    if (client.phase !== "open") continue;
    // Nothing runs again in a gateway that was killed meanwhile.
    if (await world.resumeInstance(runId).catch(() => false)) instances.resumed += 1;
  }
}
