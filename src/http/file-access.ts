/** What the routes of files, uploads and batches share: where contents lie, who may add to them, how they refuse. */
import type { Context } from "hono";
import type { ModelRulesReply } from "../objects/methods/runs.ts";
import { requireRun } from "./auth/middleware.ts";
import type { ApiRefusal } from "../batch/refusal.ts";
import type { AppEnv } from "./context.ts";
import { jsonOf, readJsonBytes } from "../contract/body.ts";
import { Refusal, type Reason } from "../errors.ts";
import { LARGE_BODY_BYTES_MIN } from "../limits.ts";
import { RunCaller } from "../objects/clients/caller.ts";
import { objectFailure } from "../objects/clients/retry.ts";
import { bodyRoom } from "./body-bound.ts";

/** The bucket with the contents of files. Refuses with `misconfigured` if the gateway has none. */
export function bucketOf(c: Context<AppEnv>): R2Bucket {
  const { FILES: bucket } = c.env;
  if (bucket !== undefined) return bucket;
  const message = "this gateway has no R2 bucket bound as FILES, so it accepts no files and no batches";
  throw new Refusal({ reason: "misconfigured", variable: "FILES", message });
}

/** The run that a request acts for, which must be open: one that has ended keeps what it has and gets nothing new. */
export async function requireOpenRun(c: Context<AppEnv>): Promise<string> {
  const runId = requireRun(c);
  const rules = await new RunCaller(c.env, runId).callWithRetry<ModelRulesReply>((run) => run.modelRules());
  if (!rules.ok) throw new Refusal(rules.reason);
  return runId;
}

/**
 * Refuses what is announced to be larger than the room that its run has, before a byte of it is read. What is announced to be small, or
 * not at all, is checked when it is there: it costs the gateway little, or is not known. `copies`: how often it is stored at once.
 */
export async function requireRoom(c: Context<AppEnv>, runId: string, copies = 1): Promise<void> {
  await requireRoomFor(c, runId, Number(c.req.header("content-length") ?? 0) * copies);
}

/** The same for what a request says that it will store. */
export async function requireRoomFor(c: Context<AppEnv>, runId: string, bytes: number): Promise<void> {
  if (!(bytes >= LARGE_BODY_BYTES_MIN)) return;
  const asking = new RunCaller(c.env, runId).callWithRetry<Reason | null>((run) => run.roomForFile(bytes));
  const full = await asking.catch((error: unknown) => {
    // A run that a deploy has not replaced yet is asked when the file is there.
    if (objectFailure(error) === "outdated") return null;
    throw error;
  });
  if (full !== null) throw new Refusal(full);
}

/** The answer to a request that is refused in OpenAI's own words. A retry does not help, and clients would retry a 409. */
export function apiRefusal({ status, error }: ApiRefusal): Response {
  return Response.json({ error }, { status, headers: { "x-should-retry": "false" } });
}

/** A JSON body, as its bytes and as the value that they spell. */
export async function readSmallJson(c: Context<AppEnv>): Promise<{ bytes: Uint8Array; value: unknown }> {
  const bytes = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!bytes.ok) throw new Refusal(bytes.reason);
  const body = jsonOf(bytes.value);
  if (!body.ok) throw new Refusal(body.reason);
  return { bytes: bytes.value, value: body.value };
}

/** A name that nothing has yet, such as `file-` and 32 hexadecimal digits. */
export function freshId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Unix seconds now. */
export function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}
