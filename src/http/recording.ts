/** Whether the answers of a request's calls are recorded and replayed, and in which epoch. */
import type { Context } from "hono";
import type { AppEnv } from "./context.ts";
import { parseEpoch } from "../contract/replay.ts";
import { Refusal } from "../errors.ts";
import { TOKEN_CACHE_MAX } from "../limits.ts";
import type { ReplaySource } from "../objects/methods/replay.ts";
import { RunCaller } from "../objects/clients/caller.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** Names the life of the client's program that a call belongs to. */
const EPOCH_HEADER = "x-fanout-epoch";

/** The epoch of a request to a run that records; null: the run records nothing. Costs nothing under a run token, which says so. */
export async function recordingOf(c: Context<AppEnv>, runId: string): Promise<{ epoch: string } | null> {
  const principal = c.get("principal");
  const records = principal.kind === "run" ? principal.records === true : await recordsOf(c, runId);
  if (!records) return null;
  const epoch = parseEpoch(c.req.header(EPOCH_HEADER));
  if (!epoch.ok) throw new Refusal(epoch.reason);
  return { epoch: epoch.value };
}

/** Runs that the operator has named: a run never changes whether it records. */
const known = new BoundedMap<string, boolean>(TOKEN_CACHE_MAX);

async function recordsOf(c: Context<AppEnv>, runId: string): Promise<boolean> {
  const before = known.get(runId);
  if (before !== undefined) return before;
  const source = await new RunCaller(c.env, runId).callWithRetry<ReplaySource>((run) => run.replaySource(null));
  if (source === null) return false;
  known.set(runId, source.records);
  return source.records;
}
