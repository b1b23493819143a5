/**
 * What is remembered of a batch beside its output, so that the same command goes on with it. Each step is on the disk
 * before the next one begins: `attempt` makes the create call's key, so a create whose answer was lost finds its batch.
 */
import { createHash } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { Failure } from "./failure.mjs";
import { isObject, parseJson } from "./json.mjs";
import { printable, shellWord } from "./printable.mjs";

/**
 * `hash` stands for the input and the options that it is asked with. `settled`: the batch has ended and its answers were
 * written. `spentUsd`: of the run when the batch began; null = not known.
 * @typedef {{
 *   apiUrl: string, hash: string, endpoint: string, attempt: string, inputFileId: string | null,
 *   batchId: string | null, settled: boolean, spentUsd: number | null,
 * }} State
 */

/** @param {string} output */
export function statePath(output) {
  return `${output}.fanout`;
}

/**
 * @param {string} output
 * @returns {Promise<State | null>} null where there is none.
 */
export async function readState(output) {
  const path = statePath(output);
  let text;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new Failure(`Cannot read ${printable(path)}: ${printable(String(error))}`);
  }
  const state = stateOf(parseJson(text));
  if (state === null) throw new Failure(`${shellWord(path)} does not hold what it should. --fresh begins anew.`);
  return state;
}

/**
 * @param {unknown} value
 * @returns {State | null}
 */
function stateOf(value) {
  if (!isObject(value) || value["version"] !== 1) return null;
  const { api_url, hash, endpoint, attempt, input_file_id, batch_id, settled, spent_usd } = value;
  if (typeof api_url !== "string" || typeof hash !== "string" || typeof endpoint !== "string") return null;
  if (typeof attempt !== "string" || typeof settled !== "boolean") return null;
  const id = (/** @type {unknown} */ found) => (typeof found === "string" && found !== "" ? found : null);
  return {
    apiUrl: api_url,
    hash,
    endpoint,
    attempt,
    inputFileId: id(input_file_id),
    batchId: id(batch_id),
    settled,
    spentUsd: typeof spent_usd === "number" ? spent_usd : null,
  };
}

/**
 * Replaces the file whole: a crash leaves the old one.
 * @param {string} output
 * @param {State} state
 */
export async function writeState(output, state) {
  const path = statePath(output);
  const draft = `${path}.${process.pid}.tmp`;
  const value = {
    version: 1,
    api_url: state.apiUrl,
    hash: state.hash,
    endpoint: state.endpoint,
    attempt: state.attempt,
    input_file_id: state.inputFileId,
    batch_id: state.batchId,
    settled: state.settled,
    spent_usd: state.spentUsd,
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

/** @param {string} output */
export async function forgetState(output) {
  await rm(statePath(output), { force: true });
}

/**
 * The key of the create call: the same for the same content in the same attempt, so that it is made once.
 * @param {Pick<State, "hash" | "attempt">} state
 */
export function idempotencyKey({ hash, attempt }) {
  return `fanout-batch-${createHash("sha256").update(`${hash} ${attempt}`).digest("hex")}`;
}

/**
 * The state to go on from; null = begin a new batch.
 * @param {State | null} found
 * @param {Pick<State, "apiUrl" | "hash">} wanted
 * @param {string} output
 * @throws {Failure} rather than forget a batch that may be running.
 */
export function resumable(found, { apiUrl, hash }, output) {
  if (found === null) return null;
  if (found.apiUrl === apiUrl && found.hash === hash) return found;
  if (found.settled || found.inputFileId === null) return null;
  const name = shellWord(output);
  const at = found.apiUrl === apiUrl ? "" : ` at ${printable(found.apiUrl)}`;
  throw new Failure(
    `${name} waits for a batch${at} with another input or other options. Start that one again, cancel it with\n` +
      `  fanout batch --cancel -o ${name}\nname another output with -o, or leave it to itself with --fresh.`,
  );
}
