/** What the run's files, uploads, contexts and batches have together: their object asks here before it stores more. */
import type { Reason } from "../../../src/errors.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import { roomReason } from "../store/room.ts";

/** Says why there is no room for so many bytes more, before they are uploaded; notes nothing. Null = there is. */
export async function roomForFile(life: RunLifecycle, moreBytes: number): Promise<Reason | null> {
  if (life.run === null) return null;
  await life.growSpace(moreBytes);
  return roomReason(life.store, moreBytes);
}

/** Notes the bytes, or says why there is no room for so many. `isStored`: they are there, and are noted in any case. */
export async function filesStored(life: RunLifecycle, bytes: number, isStored = false): Promise<Reason | null> {
  if (life.run === null) return null;
  await life.growSpace(bytes - life.store.space.filesBytes, isStored);
  const { store } = life;
  const moreBytes = bytes - store.space.filesBytes;
  const full = moreBytes > 0 ? roomReason(store, moreBytes) : null;
  if (full === null || isStored) store.space.setFilesBytes(bytes);
  return full;
}
