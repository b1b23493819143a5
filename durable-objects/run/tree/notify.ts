/**
 * Notifying a run's relatives of its end: its children of how it ended, the holder of its budget of what it spent. Both
 * are repeated until they succeed, and may arrive twice. The alarm sends them, for its calls start a new chain: the
 * platform cuts chains of calls between objects at a depth.
 */
import type { Amounts } from "../../../src/run/money/ledger.ts";
import type { EndStatus, RunSettings } from "../../../src/objects/methods/runs.ts";
import { RunCaller } from "../../../src/objects/clients/caller.ts";
import { firstPlaceOf } from "../../../src/objects/clients/directory.ts";
import { directoryOf, isOfDay, type Objects } from "../../../src/objects/address.ts";

/** Ends child runs. `neverOpened` is called for a child whose object was never opened: it will report nothing itself. */
export async function endChildren(
  objects: Objects,
  childIds: readonly string[],
  status: EndStatus,
  neverOpened: (childId: string) => Promise<void>,
): Promise<void> {
  await Promise.all(
    childIds.map(async (childId) => {
      const exists = await new RunCaller(objects, childId).callWithRetry<boolean>((run) => run.end(status));
      if (!exists) await neverOpened(childId);
    }),
  );
}

/** Reports to the holder of a run's budget what the run spent, and how much of it upstreams have billed above reservations. */
export async function reportSpent(
  objects: Objects,
  { holder, parentId, id, createdAtMs }: Pick<RunSettings, "holder" | "parentId" | "id" | "createdAtMs">,
  { spent, overrun }: { spent: Amounts; overrun: Amounts },
): Promise<void> {
  if (isOfDay({ holder })) {
    const openedAt = firstPlaceOf({ createdAtMs });
    await directoryOf(objects, { id, holder }).childEnded(id, spent.usd, overrun.usd, openedAt);
  } else if (parentId !== null) {
    await new RunCaller(objects, parentId).callWithRetry<void>((run) => run.childEnded(id, spent, overrun));
  }
}
