/** Bodies of large groups in R2: read for dispatch, deleted with the run. */
import { emptyPrefix } from "../../../src/files/r2-delete.ts";
import { bodiesPrefix, type Objects } from "../../../src/objects/address.ts";

/** The text of an object of bodies; null if R2 has none of that name. Rejects if R2 fails, or is not bound any more. */
export async function loadBodies(
  { FILES: bucket }: Objects,
  runId: string,
  { openKey, object }: { openKey: string; object: number },
): Promise<string | null> {
  if (bucket === undefined)
    throw new Error("the R2 bucket is not bound as FILES any more; bind it for the batch to continue");
  const found = await bucket.get(`${bodiesPrefix(runId, openKey)}${object}`);
  return found === null ? null : await found.text();
}

/** Deletes the bodies whose keys begin with the prefix. Safe to repeat; without R2 there are none. */
export async function dropBodies({ FILES: bucket }: Objects, prefix: string): Promise<void> {
  if (bucket !== undefined) await emptyPrefix(bucket, prefix);
}
