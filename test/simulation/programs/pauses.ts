/** Batches that wait: for a higher limit, or for the operator. */
import { ADMIN_KEY } from "../world.ts";
import { batchOf, checkEnded, later } from "./calls.ts";
import { textAt } from "./client.ts";
import { POOR_SLOT_NANO_USD, SLOT_NANO_USD, type Ends, type Work } from "./work.ts";

/** Longest that the operator takes to raise a limit, or to pause a run, ms. */
const OPERATOR_MS_MAX = 10_000;
/** How long a paused run is left alone, ms. */
const PAUSED_MS = 300_000;
/**
 * How long after the pause the provider may still be asked, ms: an attempt that was granted before may wait in its lane behind
 * six others, and among faults these may hang until their timeout of a minute.
 */
const GRANTED_MS = { calm: 5_000, faulty: 120_000 };

/** A batch whose budget is used up again and again: every time the operator adds to it. */
export async function toppedUp(work: Work): Promise<Ends> {
  const { world, client, program, violated, limited } = work;
  const settings = { on_exhausted: "pause" };
  const opened = await client.call(later(batchOf(program, settings)), [202]);
  const at = `/groups/${textAt(opened, "id")}`;
  let limitNanoUsd = program.limitNanoUsd ?? 0;
  const group = await client.followed(at, async (running) => {
    if (!Reflect.has(running, "paused")) return;
    await world.clock.wait(world.random.fraction() * OPERATOR_MS_MAX);
    limitNanoUsd += Math.max(SLOT_NANO_USD, program.slots * POOR_SLOT_NANO_USD);
    limited(program.name, limitNanoUsd);
    await patched(work, { budget: { usd: limitNanoUsd / 1e9 } });
  });
  if (limitNanoUsd === program.limitNanoUsd && !world.mayFail) violated("half of the money was enough");
  return checkEnded(group, { client, program, violated, at, mayExhaust: false });
}

/** A batch whose run the operator pauses for a while. */
export async function paused(work: Work): Promise<Ends> {
  const { world, client, program, violated } = work;
  const opened = await client.call(later(batchOf(program, {})), [202]);
  const at = `/groups/${textAt(opened, "id")}`;
  await world.clock.wait(world.random.fraction() * OPERATOR_MS_MAX);
  const run = await patched(work, { paused: true });
  if (textAt(run, "status") !== "paused") violated(`the paused run is ${textAt(run, "status")}`);
  const sinceMs = world.clock.nowMs;
  await world.clock.wait(PAUSED_MS);
  const { lastAskedMs } = world.upstream.billOf(program.name);
  if (lastAskedMs > sinceMs + (world.mayFail ? GRANTED_MS.faulty : GRANTED_MS.calm))
    violated(`a call was made ${lastAskedMs - sinceMs} ms after its run was paused`);
  await client.look();
  await patched(work, { paused: false });
  return checkEnded(await client.followed(at), { client, program, violated, at, mayExhaust: false });
}

function patched({ client, runId }: Work, body: object): Promise<object> {
  return client.call({ method: "PATCH", path: `/runs/${runId}`, body, token: ADMIN_KEY }, [200]);
}
