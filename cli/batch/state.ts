/**
 * The state of a batch, stored next to its output, so that the same command can continue it. Each step is on disk before the
 * next one begins. The idempotency key of the create request is made from `attempt`, so repeating a request whose reply was
 * lost finds the same batch.
 */
import { createHash } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { z } from "zod";
import { Failure } from "../failure.ts";
import { parseJson } from "../text/json.ts";
import { printable, shellWord } from "../text/printable.ts";

/**
 * `hash`: of the input and its options. `settled`: the batch has ended and its answers were written. `spentUsd`: what the run had
 * spent when the batch began, and `costUsd` how much more when it was settled; null if unknown. `serviceTier`: as in the setting.
 */
export type State = {
  apiUrl: string;
  hash: string;
  endpoint: string;
  serviceTier: string | null;
  attempt: string;
  inputFileId: string | null;
  batchId: string | null;
  settled: boolean;
  spentUsd: number | null;
  costUsd: number | null;
};

export function statePath(output: string): string {
  return `${output}.fanout`;
}

/** Returns null if there is none. */
export async function readState(output: string): Promise<State | null> {
  const path = statePath(output);
  let text;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new Failure(`Cannot read ${printable(path)}: ${printable(String(error))}`);
  }
  const state = StateFile.safeParse(parseJson(text));
  if (!state.success)
    throw new Failure(`${shellWord(path)} is not a valid state file. To start a new batch, use --fresh.`);
  return state.data;
}

const text = z.string().min(1).nullable().catch(null);
const usd = z.number().nullable().catch(null);

/** The file, with its fields by the names that they have in memory. */
const StateFile = z
  .object({
    version: z.literal(1),
    api_url: z.string(),
    hash: z.string(),
    endpoint: z.string(),
    service_tier: text,
    attempt: z.string(),
    input_file_id: text,
    batch_id: text,
    settled: z.boolean(),
    spent_usd: usd,
    cost_usd: usd,
  })
  .transform(({ hash, endpoint, attempt, settled, ...file }): State => ({
    apiUrl: file.api_url,
    hash,
    endpoint,
    serviceTier: file.service_tier,
    attempt,
    inputFileId: file.input_file_id,
    batchId: file.batch_id,
    settled,
    spentUsd: file.spent_usd,
    costUsd: file.cost_usd,
  }));

/** Replaces the file atomically: a crash leaves the old one. */
export async function writeState(output: string, state: State): Promise<void> {
  const path = statePath(output);
  const draft = `${path}.${process.pid}.tmp`;
  const value = {
    version: 1,
    api_url: state.apiUrl,
    hash: state.hash,
    endpoint: state.endpoint,
    ...(state.serviceTier === null ? {} : { service_tier: state.serviceTier }),
    attempt: state.attempt,
    input_file_id: state.inputFileId,
    batch_id: state.batchId,
    settled: state.settled,
    spent_usd: state.spentUsd,
    cost_usd: state.costUsd,
  };
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

export async function forgetState(output: string): Promise<void> {
  await rm(statePath(output), { force: true });
}

/**
 * The idempotency key of the create request: the same for the same content and attempt, so that one batch is created.
 */
export function idempotencyKey({ hash, attempt }: Pick<State, "hash" | "attempt">): string {
  return `fanout-batch-${createHash("sha256").update(`${hash} ${attempt}`).digest("hex")}`;
}

/**
 * The state to continue from; null: start a new batch.
 * @throws {Failure} instead of abandoning a batch that may be running.
 */
export function resumable(
  found: State | null,
  { apiUrl, hash }: Pick<State, "apiUrl" | "hash">,
  output: string,
): State | null {
  if (found === null) return null;
  if (found.apiUrl === apiUrl && found.hash === hash) return found;
  if (found.inputFileId === null) return null;
  const name = shellWord(output);
  if (found.settled) {
    throw new Failure(
      `${name} has the answers to another input, or to the same with other options. Use another output with -o, or replace them with --fresh.`,
    );
  }
  const at = found.apiUrl === apiUrl ? "" : ` at ${printable(found.apiUrl)}`;
  throw new Failure(
    `${name} belongs to a batch${at} with another input or other options. Run that command again, cancel the batch with\n` +
      `  fanout batch --cancel -o ${name}\nuse another output with -o, or abandon the batch with --fresh.`,
  );
}
