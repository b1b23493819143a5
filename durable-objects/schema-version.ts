/**
 * The version of an object's rows, for the classes whose rows have had one form so far. A run has versions of its own
 * (run/store/tables.ts). Rows without a version are of version 1, so that none is written before it says something: code that gives
 * rows another form puts its version under this key, in the transaction that writes the first of them. See decisions/0016.
 */

const KEY = "schema";

/** The version of rows that have none. */
export const FIRST_SCHEMA_VERSION = 1;

/**
 * Refuses a storage that newer code has written, as after a deployment was rolled back: what this code does not know it would misread
 * or drop. Throws, so that no method of the object works.
 */
export function refuseNewerRows(storage: DurableObjectStorage, known = FIRST_SCHEMA_VERSION): void {
  const version = storage.kv.get<number>(KEY) ?? FIRST_SCHEMA_VERSION;
  if (version > known) throw new Error(`storage has schema ${version}, this code knows ${known}`);
}
