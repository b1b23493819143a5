/** Runs one batch from its input to its answers, or continues it from where the last run of the command stopped. */
import { randomUUID } from "node:crypto";
import { createReadStream, existsSync, realpathSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Causes } from "./causes.mjs";
import { idOf } from "./server/api.mjs";
import { convert } from "./input/convert.mjs";
import { deliver } from "./deliver.mjs";
import { Failure } from "../failure.mjs";
import { follow } from "./server/follow.mjs";
import { memberOf, textOf } from "../text/json.mjs";
import { printable, shellWord } from "../text/printable.mjs";
import { Problem } from "./server/problem.mjs";
import { countText } from "./progress.mjs";
import { report } from "./report.mjs";
import { forgetState, idempotencyKey, readState, resumable, writeState } from "./state.mjs";
import { uploadFile } from "./server/upload.mjs";

/** @typedef {import("./setting.mjs").Setting} Setting */
/** @typedef {import("./state.mjs").State} State */
/** @typedef {import("./input/convert.mjs").Converted} Converted */

/**
 * `sleep` rejects when `signal` aborts. `batchIs` gets the id as soon as the batch exists.
 * @typedef {{
 *   api: import("./server/api.mjs").Api, display: import("./display.mjs").Display, stdin: () => AsyncIterable<Buffer>,
 *   stdout: (text: string) => void, sleep: (delayMs: number) => Promise<void>, now: () => number, signal: AbortSignal,
 *   batchIs: (id: string) => void,
 * }} RunDeps
 */

/**
 * @param {Setting & { input: NonNullable<Setting["input"]> }} setting
 * @param {RunDeps} deps
 * @returns {Promise<number>} The exit status.
 */
export async function runBatch(setting, deps) {
  const { input, output, endpoint, serviceTier, defaults, fresh, server } = setting;
  const { api, display } = deps;
  const startedAtMs = deps.now();
  checkPaths(input.path, output);
  const folder = await mkdtemp(join(tmpdir(), "fanout-batch-"));
  try {
    const chunks = input.path === "-" ? deps.stdin() : createReadStream(input.path, { signal: deps.signal });
    const path = join(folder, "input.jsonl");
    const converted = await convert(chunks, { kind: input.kind, path, endpoint, serviceTier, defaults });
    if (converted.ignored.length > 0) display.note(`Ignored: ${printable(converted.ignored.join(", "))}.`);
    const found = fresh ? await forgotten(output, display) : await readState(output);
    // Answers that were deleted need no protection.
    const isGone = found?.settled === true && found.hash !== converted.hash && !existsSync(output);
    const state = resumable(isGone ? null : found, { apiUrl: server.apiUrl, hash: converted.hash }, output);
    const { batchId, spentUsd } = await begun(state, { converted, setting, deps });
    deps.batchIs(batchId);
    const ended = await followed({ id: batchId, spentUsd }, deps);
    const { status, document } = ended;
    display.clear();
    if (status === "failed") {
      // The next run of the command starts a new batch: the input or the server may be fixed by then.
      await forgetState(output);
      const refused = { completed: 0, failed: 0, strangers: 0, causes: refusals(document, converted) };
      return await report({ batchId, status, ...refused, costUsd: 0 }, { ...setting, startedAtMs }, deps);
    }
    const { ids } = converted;
    const delivery = await deliver(api, document, { ...setting, ids, folder, signal: deps.signal });
    // Once the batch has ended, the run may spend on other calls: a later run of the command reports the same cost.
    const costUsd = state?.settled ? (state.costUsd ?? ended.costUsd) : ended.costUsd;
    const last = await readState(output);
    if (last?.batchId === batchId) await writeState(output, { ...last, settled: true, costUsd });
    return await report({ batchId, status, ...delivery, costUsd }, { ...setting, startedAtMs }, deps);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} input
 * @param {string} output
 */
function checkPaths(input, output) {
  if (input === "-") return;
  let isFolder;
  try {
    isFolder = statSync(input).isDirectory();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    throw new Failure(code === "ENOENT" ? `No such file: ${shellWord(input)}.` : `Cannot read ${shellWord(input)}.`);
  }
  if (isFolder) throw new Failure(`${shellWord(input)} is a folder.`);
  if (realOf(input) === realOf(output)) throw new Failure("The input and the output are the same file.");
}

/** @param {string} path */
function realOf(path) {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/**
 * @param {string} output
 * @param {import("./display.mjs").Display} display
 */
async function forgotten(output, display) {
  const state = await readState(output).catch((error) => {
    if (error instanceof Failure) return null;
    throw error;
  });
  if (state?.batchId != null && !state.settled) {
    display.note(`Batch ${printable(state.batchId)} is abandoned. It may still be running and spending.`);
  }
  return null;
}

/**
 * Creates the batch, unless it exists already.
 * @param {State | null} found
 * @param {{ converted: Converted, setting: Setting, deps: RunDeps }} about
 */
async function begun(found, { converted, setting, deps }) {
  const { api, display } = deps;
  const { output, server, serviceTier } = setting;
  if (found?.batchId != null) {
    display.note(`Continuing batch ${printable(found.batchId)}.`);
    return { batchId: found.batchId, spentUsd: found.spentUsd };
  }
  const { hash, endpoint } = converted;
  /** @type {State} */
  let state = found ?? {
    ...{ apiUrl: server.apiUrl, hash, endpoint, serviceTier, attempt: randomUUID() },
    ...{ inputFileId: null, batchId: null, settled: false, spentUsd: null, costUsd: null },
  };
  // Written before anything is sent: if the output cannot be written, nothing must be paid.
  await writeState(output, state);
  if (state.inputFileId === null) {
    const inputFileId = await upload(converted, deps);
    state = { ...state, inputFileId, spentUsd: await api.spentUsd() };
    await writeState(output, state);
  }
  const batchId = await createBatch(api, state);
  await writeState(output, { ...state, batchId });
  display.note(
    `Batch ${printable(batchId)}: ${countText(converted.ids.length)} ${converted.ids.length === 1 ? "line" : "lines"}.`,
  );
  return { batchId, spentUsd: state.spentUsd };
}

/**
 * @param {Converted} converted
 * @param {RunDeps} deps
 */
async function upload(converted, { api, display }) {
  const total = converted.bytes;
  const facts = { phase: "uploading", unit: /** @type {const} */ ("bytes"), total, failed: 0 };
  const sent = (/** @type {number} */ done) => display.progress({ ...facts, done, perSecond: null, costUsd: null });
  return uploadFile(api, converted, { sent });
}

/**
 * Creates the batch, or finds the one that was created with this state's key.
 * @param {import("./server/api.mjs").Api} api
 * @param {State} state
 */
export async function createBatch(api, state) {
  const { inputFileId: input_file_id, endpoint, serviceTier } = state;
  const tier = serviceTier === null ? {} : { service_tier: serviceTier };
  const request = { input_file_id, endpoint, completion_window: "24h", ...tier };
  return idOf(await api.postJson("/batches", request, { "idempotency-key": idempotencyKey(state) }));
}

/**
 * @param {{ id: string, spentUsd: number | null }} batch
 * @param {RunDeps} deps
 */
async function followed(batch, { api, display, now, sleep }) {
  const progress = (/** @type {import("./progress.mjs").Progress} */ shown) => display.progress(shown);
  try {
    return await follow(api, batch, { now, sleep, progress });
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    throw new Failure(`${error.message}\nThe token may belong to another run. To start a new batch, use --fresh.`);
  }
}

/**
 * Why the input was refused, by the line numbers of the input. No line was run.
 * @param {import("./server/api.mjs").Document} document
 * @param {Converted} converted
 */
function refusals(document, converted) {
  const data = memberOf(memberOf(document, "errors"), "data");
  const causes = new Causes();
  for (const error of Array.isArray(data) ? data : []) {
    const line = memberOf(error, "line");
    const own = typeof line === "number" ? converted.lines[line - 1] : undefined;
    causes.add(
      own === undefined ? "" : String(own),
      textOf(error, "message") ?? textOf(error, "code") ?? "no reason given",
    );
  }
  return causes;
}
