/** The only file that turns an id into a stub: which object owns what, and how its name is made. */
import { DIRECTORY_SHARDS, TOKEN_CACHE_MAX } from "../limits.ts";
import { placeOf, type Jurisdiction, type Placed } from "../jurisdiction.ts";
import type { CassetteApi } from "./methods/cassette-api.ts";
import type { BatchApi } from "./methods/batch-api.ts";
import type { DirectoryApi } from "./methods/directory-api.ts";
import type { FileApi } from "./methods/file-api.ts";
import type { GateApi } from "./methods/gate-api.ts";
import type { LaneApi } from "./methods/lane-api.ts";
import type { ProviderBatchApi } from "./methods/provider-batch.ts";
import type { RunApi } from "./methods/run-api.ts";
import type { RunSettings } from "./methods/runs.ts";
import type { UpstreamApi } from "./methods/upstream-api.ts";

/** A group of a run, by its number. */
export type GroupName = { runId: string; seq: number };

/** The object namespaces, as bound in wrangler.toml, and the jurisdiction in which all objects are. */
export type Objects = Placed & {
  RUN: DurableObjectNamespace<RunApi>;
  LANE: DurableObjectNamespace<LaneApi>;
  DIRECTORY: DurableObjectNamespace<DirectoryApi>;
  BATCH: DurableObjectNamespace<BatchApi>;
  SHELF: DurableObjectNamespace<FileApi>;
  UPSTREAM: DurableObjectNamespace<UpstreamApi>;
  GATES: DurableObjectNamespace<GateApi>;
  CASSETTE: DurableObjectNamespace<CassetteApi>;
  PROVIDER_BATCH: DurableObjectNamespace<ProviderBatchApi>;
  /** Contents of files. Absent where the gateway runs without R2: then it takes no files. */
  FILES?: R2Bucket;
  /** Executes groups without a client. Absent unless bound in wrangler.toml: then lanes do. */
  WORKFLOW?: Workflow<GroupName>;
};

/** The part of a namespace in which the gateway's objects are: all of it where there is no jurisdiction. */
function placed<T extends Rpc.DurableObjectBranded>(
  namespace: DurableObjectNamespace<T>,
  place: Placed,
): DurableObjectNamespace<T> {
  const jurisdiction = placeOf(place);
  return jurisdiction === null ? namespace : namespace.jurisdiction(jurisdiction);
}

/**
 * A fresh stub of a run. After an error a stub is broken: take a new one. `region`: where the object begins, if this is
 * the first use of it; afterwards it stays where it is.
 */
export function runOf(
  objects: Objects,
  runId: string,
  region: RunSettings["region"] = null,
): DurableObjectStub<RunApi> {
  const runs = runsOf(objects);
  const id = runIdOf(runs, runId, placeOf(objects));
  return region === null ? runs.get(id) : runs.get(id, { locationHint: region });
}

/** The namespace of all runs, for who measures the platform. */
export function runsOf(objects: Pick<Objects, "RUN" | "JURISDICTION">): DurableObjectNamespace<RunApi> {
  return placed(objects.RUN, objects);
}

/**
 * The id of a run that is about to be opened. It holds the id of its object, which the platform finds without a look
 * around the world: the first use of an object by its name can take some hundred milliseconds. It names its jurisdiction, if
 * there is one: an id is for ever, and a gateway of another place must not take it for one of its own.
 */
export function newRunId(objects: Pick<Objects, "RUN" | "JURISDICTION">): string {
  return `${markOf("run_", placeOf(objects))}${runsOf(objects).newUniqueId().toString()}`;
}

/** What an id begins with. */
function markOf(prefix: string, jurisdiction: Jurisdiction | null): string {
  return jurisdiction === null ? prefix : `${prefix}${jurisdiction}_`;
}

/** The id of an object, in an id that holds it. */
const DIGITS = /^[0-9a-f]{64}$/;

/** The digits behind a mark; undefined if they are not those of an object's id: then the whole id is the object's name. */
function digitsIn(id: string, mark: string): string | undefined {
  const digits = id.startsWith(mark) ? id.slice(mark.length) : "";
  return DIGITS.test(digits) ? digits : undefined;
}

const ids = new Map<string, DurableObjectId>();

/** The part of a namespace that makes ids of what is written. */
type IdReader = Pick<DurableObjectNamespace, "idFromName" | "idFromString">;

/** The id of a run's object. Reading one, and deriving one from a name, takes a hash; a busy run's is remembered. */
export function runIdOf(namespace: IdReader, runId: string, jurisdiction: Jurisdiction | null = null): DurableObjectId {
  const known = ids.get(runId);
  if (known !== undefined) return known;
  if (ids.size >= TOKEN_CACHE_MAX) ids.clear();
  const id = uniqueIdOf(namespace, digitsIn(runId, markOf("run_", jurisdiction))) ?? namespace.idFromName(runId);
  ids.set(runId, id);
  return id;
}

/** The id that these digits spell; null if this namespace did not make it: the platform checks a signature in it. */
function uniqueIdOf(namespace: IdReader, digits: string | undefined): DurableObjectId | null {
  if (digits === undefined) return null;
  try {
    return namespace.idFromString(digits);
  } catch {
    return null;
  }
}

/** A lane of a run. Each run has lanes of its own: its calls cannot slow another run's. */
export function laneOf(objects: Objects, runId: string, lane: number): DurableObjectStub<LaneApi> {
  return placed(objects.LANE, objects).getByName(`${runId}/${lane}`);
}

/** The id of a batch that is about to be created. It holds the id of its object, as a run's does. */
export function newBatchId(
  objects: Pick<Objects, "BATCH" | "JURISDICTION">,
  prefix: "batch_" | "msgbatch_" = "batch_",
): string {
  return `${markOf(prefix, placeOf(objects))}${placed(objects.BATCH, objects).newUniqueId().toString()}`;
}

/** A batch of a run. Clients name it, so each call to its object names the run, and the object replies to its own run only. */
export function batchOf(objects: Objects, runId: string, batchId: string): DurableObjectStub<BatchApi> {
  const batches = placed(objects.BATCH, objects);
  return batches.get(batchIdOf(batches, runId, batchId, placeOf(objects)));
}

/**
 * The id of a batch's object. One that is made of an Idempotency-Key has 32 digits, and is a part of the object's name. The name has
 * the run's id, too: a key of one run finds no batch of another.
 */
export function batchIdOf(
  namespace: IdReader,
  runId: string,
  batchId: string,
  jurisdiction: Jurisdiction | null = null,
): DurableObjectId {
  const digits = digitsIn(batchId.replace(/^msg/, ""), markOf("batch_", jurisdiction));
  const unique = uniqueIdOf(namespace, digits);
  return unique ?? namespace.idFromName(`${runId}/${batchId}`);
}

/** A run's files, its uploads and the list of its batches. */
export function runFilesOf(objects: Objects, runId: string): DurableObjectStub<FileApi> {
  return placed(objects.SHELF, objects).getByName(runId);
}

/** The key of a file's content in R2. */
export function fileKey(runId: string, fileId: string): string {
  return `${runId}/${fileId}`;
}

/** The key of the text of a large context in R2. */
export function contextKey(runId: string, object: string): string {
  return `${runId}/contexts/${object}`;
}

/** The prefix of the keys in R2 under which are bodies of a run's large groups; with `openKey`, of one group. */
export function bodiesPrefix(runId: string, openKey?: string): string {
  return openKey === undefined ? `${runId}/bodies/` : `${runId}/bodies/${openKey}/`;
}

/** What all runs have learned of an upstream, by its name in the configuration. */
export function upstreamOf(objects: Objects, upstream: string): DurableObjectStub<UpstreamApi> {
  return placed(objects.UPSTREAM, objects).getByName(upstream);
}

/** The tape of a name. Names come from the configuration of upstreams, never from clients. */
export function cassetteOf(objects: Objects, tape: string): DurableObjectStub<CassetteApi> {
  return placed(objects.CASSETTE, objects).getByName(tape);
}

/** The object that feeds the batches of a group's provider. */
export function providerBatchOf(objects: Objects, runId: string, seq: number): DurableObjectStub<ProviderBatchApi> {
  return placed(objects.PROVIDER_BATCH, objects).getByName(`${runId}/${seq}`);
}

/** A gate by its name: the upstream's, and `#` with the name of the key's secret if the upstream has several keys. */
export function gateOf(objects: Objects, gate: string): DurableObjectStub<GateApi> {
  return placed(objects.GATES, objects).getByName(gate);
}

/**
 * The part of the list that has a root run. Runs are spread by the end of their ids, which is a hash. Those whose ids
 * name their objects are in one object, and so are those that reserved in the root budget of a day there.
 */
export function directoryOf(
  objects: Objects,
  { id, holder }: Pick<RunSettings, "id" | "holder">,
): DurableObjectStub<DirectoryApi> {
  const isSpread = holder !== "directory" && digitsIn(id, markOf("run_", placeOf(objects))) !== undefined;
  const parts = placed(objects.DIRECTORY, objects);
  return parts.getByName(isSpread ? shardName(parseInt(id.slice(-2), 16) % DIRECTORY_SHARDS) : WHOLE);
}

/** Whether a run reserves in the root budget of a day, in the part of the list that has it. */
export function isOfDay({ holder }: Pick<RunSettings, "holder">): boolean {
  return holder === "part" || holder === "directory";
}

/** The object that divides the root budgets of days among the parts of the list. */
export function dayWholeOf(objects: Objects): DurableObjectStub<DirectoryApi> {
  return placed(objects.DIRECTORY, objects).getByName(WHOLE);
}

/** A part of the list, by the id of its object. */
export function directoryPartOf(objects: Objects, part: string): DurableObjectStub<DirectoryApi> {
  const parts = placed(objects.DIRECTORY, objects);
  return parts.get(parts.idFromString(part));
}

/** Every object that has a part of the list: functions that make a stub, because a stub is of no use after an error. */
export function directoriesOf(objects: Objects): (() => DurableObjectStub<DirectoryApi>)[] {
  const shards = Array.from({ length: DIRECTORY_SHARDS }, (_, shard) => shardName(shard));
  return [...shards, WHOLE].map((name) => () => placed(objects.DIRECTORY, objects).getByName(name));
}

/** The name of the object that divides the budgets of days, and has the runs that no part has. */
const WHOLE = "runs";

function shardName(shard: number): string {
  return `runs/${shard}`;
}
