/** The only file that turns an id into a stub: which object holds what, and where lanes live. */
import { TOKEN_CACHE_MAX } from "../src/limits.ts";
import type { BatchObject } from "./batch/object.ts";
import type { DirectoryObject } from "./directory/object.ts";
import type { LaneObject } from "./lane/object.ts";
import type { RunObject } from "./run/object.ts";
import type { ShelfObject } from "./shelf/object.ts";

/** The object namespaces, as bound in wrangler.toml. */
export type Objects = {
  RUN: DurableObjectNamespace<RunObject>;
  LANE: DurableObjectNamespace<LaneObject>;
  DIRECTORY: DurableObjectNamespace<DirectoryObject>;
  BATCH: DurableObjectNamespace<BatchObject>;
  SHELF: DurableObjectNamespace<ShelfObject>;
  /** Contents of files. Absent where the gateway runs without R2: then it takes no files. */
  FILES?: R2Bucket;
};

/** A fresh stub of a run. After an error a stub is broken: take a new one. */
export function runOf(objects: Objects, runId: string): DurableObjectStub<RunObject> {
  return objects.RUN.get(runIdOf(objects.RUN, runId));
}

const ids = new Map<string, DurableObjectId>();

/** Deriving an id from a name takes a hash; a busy run's is remembered. */
function runIdOf(namespace: Objects["RUN"], runId: string): DurableObjectId {
  const known = ids.get(runId);
  if (known !== undefined) return known;
  if (ids.size >= TOKEN_CACHE_MAX) ids.clear();
  const id = namespace.idFromName(runId);
  ids.set(runId, id);
  return id;
}

/** Lanes belong to their run: what one run's calls do cannot slow another's. */
export function laneOf(objects: Objects, runId: string, lane: number): DurableObjectStub<LaneObject> {
  return objects.LANE.getByName(`${runId}/${lane}`);
}

/** A batch of a run: another run's id leads to an object that knows nothing. */
export function batchOf(objects: Objects, runId: string, batchId: string): DurableObjectStub<BatchObject> {
  return objects.BATCH.getByName(`${runId}/${batchId}`);
}

/** What a run has in store: its files, its uploads, the list of its batches. */
export function shelfOf(objects: Objects, runId: string): DurableObjectStub<ShelfObject> {
  return objects.SHELF.getByName(runId);
}

/** Where a file's content lies in R2. */
export function fileKey(runId: string, fileId: string): string {
  return `${runId}/${fileId}`;
}

/** The one list of runs. */
export function directoryOf(objects: Objects): DurableObjectStub<DirectoryObject> {
  return objects.DIRECTORY.getByName("runs");
}
