/** Opens a child run: in a turn of its parent, which reserves its budget, and then in its own object. */
import type { IdempotencyKey } from "../../../src/objects/methods/types.ts";
import type { CapacityWait, OpenChildReply, RunInput, StoredDocument } from "../../../src/objects/methods/runs.ts";
import { LONG_POLL_MS, RUN_FLOOR_BYTES } from "../../../src/limits.ts";
import { RunCaller } from "../../../src/objects/clients/caller.ts";
import type { Objects } from "../../../src/objects/address.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import type { RunState } from "../state.ts";
import { openWhenFree } from "../tree/capacity.ts";
import { notOpenedReason, openOrReplay, type Added } from "../tree/open-child.ts";

/** `wait` null = the child is refused at once if the parent has no room for it. */
type Opening = { id: string; idempotencyKey: IdempotencyKey | null; wait: CapacityWait | null };

/** Opens a child of the run, or finds the one that the key has opened. */
export async function openChild(
  env: Objects,
  life: RunLifecycle,
  input: RunInput,
  { id, idempotencyKey, wait }: Opening,
): Promise<OpenChildReply> {
  await life.recallCredits();
  const growing = life.growSpace(RUN_FLOOR_BYTES);
  if (growing !== null) await growing;
  const inTurn = (attempt: (run: RunState, nowMs: number) => Added): Promise<Added> =>
    life.submit<Added>((reply, nowMs) => {
      const run = life.active;
      reply("reason" in run ? { ok: false, reason: run } : attempt(run, nowMs));
    });
  const until = (ready: () => boolean, waitMs: number): Promise<void> => life.until(ready, waitMs);
  const added =
    wait === null
      ? await inTurn((run, nowMs) => openOrReplay(run, input, { id, idempotencyKey }, nowMs))
      : await openWhenFree(
          { now: Date.now, inTurn, until, active: () => life.active },
          { input, id, idempotencyKey, wait },
        );
  if (!added.ok) return added;
  const { settings } = added;
  const replayed = settings === null;
  const child = new RunCaller(env, added.id, settings?.region);
  const read = (): Promise<StoredDocument | null> =>
    child.callWithRetry<StoredDocument | null>((run) => run.document(null));
  let document = replayed
    ? await read()
    : await child.callWithRetry<StoredDocument | null>((run) => run.open(settings));
  if (document === null && replayed) {
    // The key's first request may still be under way.
    await life.until(() => !life.opened.children.isOpening(added.id), LONG_POLL_MS);
    document = await read();
  }
  if (document === null) {
    return { ok: false, reason: notOpenedReason(life.opened.children.isOpening(added.id)) };
  }
  await life.change((run) => {
    const row = run.children.confirm(added.id);
    if (row !== null) run.addWrite(row);
  });
  return { ok: true, document, replayed, remainingNanoUsd: life.opened.remainingNanoUsd };
}
