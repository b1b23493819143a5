/** A run whose whole budget is carved into child runs, each with a batch. */
import { ADMIN_KEY } from "../world.ts";
import { batchOf, checkEnded, later } from "./calls.ts";
import { budgetIn, listAt, objectAt, textAt } from "./client.ts";
import { SLOT_NANO_USD, type Ends, type Work } from "./work.ts";

/** Most slots of a child. */
const CHILD_SLOTS_MAX = 10_000;
/** Longest until the next child is opened, ms. */
const BETWEEN_MS_MAX = 10_000;

type Child = { name: string; slots: number; model: string; limitNanoUsd: number };

/** Runs the children next to each other. */
export async function children(work: Work): Promise<Ends> {
  const { world, client, program } = work;
  const parts = Math.max(world.random.integer(2, 3), Math.ceil(program.slots / CHILD_SLOTS_MAX));
  const shares = carved(program.slots, parts).map((slots, index): Child => {
    const limitNanoUsd = Math.floor(((program.limitNanoUsd ?? 0) * slots) / program.slots);
    return { name: `${program.name}/c${index}`, slots, model: program.model, limitNanoUsd };
  });
  const total: Ends = { completed: 0, failed: 0 };
  const live = async (child: Child): Promise<void> => {
    await world.clock.wait(world.random.fraction() * BETWEEN_MS_MAX);
    const { completed, failed } = await finished(work, child);
    total.completed += completed;
    total.failed += failed;
    await client.look();
  };
  await Promise.all(shares.map(live));
  return total;
}

/** Parts of `slots` that differ by one at most; none is empty. */
function carved(slots: number, parts: number): number[] {
  const all = Array.from({ length: parts }, (_, index) => Math.floor((slots + index) / parts));
  return all.filter((part) => part > 0);
}

/** Opens a child, has its batch done, and closes it or leaves it to the end of its parent. */
async function finished(work: Work, child: Child): Promise<Ends> {
  const { world, client, violated } = work;
  const { id, token } = await opened(work, child);
  const own = client.as(token);
  const opening = await own.call(later(batchOf(child, {})), [202]);
  const at = `/groups/${textAt(opening, "id")}`;
  const mayExhaust = child.limitNanoUsd < child.slots * SLOT_NANO_USD;
  const checked = { client: own, program: child, at, mayExhaust };
  const ends = await checkEnded(await own.followed(at), {
    ...checked,
    violated: (what) => violated(`${child.name}: ${what}`),
  });
  if (world.random.chance(0.7)) await client.call({ method: "POST", path: `/runs/${id}/close` }, [200]);
  return ends;
}

async function opened(work: Work, child: Child): Promise<{ id: string; token: string }> {
  const { world, client, limited } = work;
  limited(child.name, child.limitNanoUsd);
  const wait = world.random.chance(0.5) ? { wait_ms: 60_000 } : {};
  const body = { name: child.name, budget: { usd: child.limitNanoUsd / 1e9 }, ...wait };
  for (let attempt = 0; ; attempt += 1) {
    const headers = { "idempotency-key": `${child.name}-${attempt}` };
    const reply = await client.call({ method: "POST", path: "/runs", body, headers }, [201, 409]);
    const token = textAt(reply, "token");
    if (token !== "") return { id: textAt(reply, "id"), token };
    // A fault kept the child's object from being opened: the gateway has cancelled it, and its budget is free again.
    const code = textAt(objectAt(reply, "error"), "code");
    if (code !== "cancelled" || !world.mayFail) throw new Error(`${child.name} is refused with ${code}`);
  }
}

/** After the end of the parent: every child has ended, and the parent has spent what they have spent. */
export async function checkTree({ world, client, runId, violated }: Work, spentNanoUsd: number): Promise<void> {
  const listed = await client.call(
    { method: "GET", path: `/runs/${runId}/children?limit=100`, token: ADMIN_KEY },
    [200],
  );
  let sumNanoUsd = 0;
  for (const row of listAt(listed, "data")) {
    const path = `/runs/${textAt(row, "id")}`;
    const run = await client.call({ method: "GET", path, token: ADMIN_KEY }, [200]);
    const { usd } = budgetIn(objectAt(run, "budget"));
    const name = textAt(run, "name");
    const spent = Math.round(usd.spent * 1e9);
    const { nanoUsd } = world.upstream.billOf(name);
    sumNanoUsd += spent;
    if (textAt(run, "status") === "active" || usd.reserved !== 0)
      violated(`${name} is ${textAt(run, "status")} and reserves ${usd.reserved} after the end of its parent`);
    if (spent < nanoUsd) violated(`${name}: spent ${spent}, billed ${nanoUsd} nano-USD`);
  }
  if (sumNanoUsd !== spentNanoUsd) violated(`the children spent ${sumNanoUsd}, their parent ${spentNanoUsd} nano-USD`);
}
