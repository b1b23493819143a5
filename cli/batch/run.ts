/** Runs one batch from its input to its answers, or continues it from where the last run of the command stopped. */
import { randomUUID } from "node:crypto";
import { createReadStream, existsSync, realpathSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Causes } from "./causes.ts";
import { idOf, type Api, type Document } from "./server/api.ts";
import { convert, type Converted } from "./input/convert.ts";
import { deliver } from "./deliver.ts";
import { Failure } from "../failure.ts";
import { follow } from "./server/follow.ts";
import { Refusals } from "./server/documents.ts";
import { printable, shellWord } from "../text/printable.ts";
import { Problem } from "./server/problem.ts";
import { countText } from "../text/amounts.ts";
import { type Progress } from "./progress.ts";
import { report, type ReportDeps } from "./report.ts";
import { forgetState, idempotencyKey, readState, resumable, writeState, type State } from "./state.ts";
import { uploadFile } from "./server/upload.ts";
import type { Display } from "./display.ts";
import type { Setting } from "./setting.ts";

/** `sleep` rejects when `signal` aborts. `batchIs` gets the id as soon as the batch exists. */
export type RunDeps = ReportDeps & {
  stdin: () => AsyncIterable<Buffer>;
  sleep: (delayMs: number) => Promise<void>;
  signal: AbortSignal;
  batchIs: (id: string) => void;
};

/** Returns the exit status. */
export async function runBatch(
  setting: Setting & { input: NonNullable<Setting["input"]> },
  deps: RunDeps,
): Promise<number> {
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

function checkPaths(input: string, output: string) {
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

function realOf(path: string) {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

async function forgotten(output: string, display: Display) {
  const state = await readState(output).catch((error) => {
    if (error instanceof Failure) return null;
    throw error;
  });
  if (state?.batchId != null && !state.settled) {
    display.note(`Batch ${printable(state.batchId)} is abandoned. It may still be running and spending.`);
  }
  return null;
}

/** Creates the batch, unless it exists already. */
async function begun(
  found: State | null,
  { converted, setting, deps }: { converted: Converted; setting: Setting; deps: RunDeps },
) {
  const { api, display } = deps;
  const { output, server, serviceTier } = setting;
  if (found?.batchId != null) {
    display.note(`Continuing batch ${printable(found.batchId)}.`);
    return { batchId: found.batchId, spentUsd: found.spentUsd };
  }
  const { hash, endpoint } = converted;
  let state: State = found ?? {
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

async function upload(converted: Converted, { api, display }: RunDeps) {
  const total = converted.bytes;
  const facts = { phase: "uploading", unit: "bytes" as const, total, failed: 0 };
  const sent = (done: number) => display.progress({ ...facts, done, perSecond: null, costUsd: null });
  return uploadFile(api, converted, { sent });
}

/** Creates the batch, or finds the one that was created with this state's key. */
export async function createBatch(api: Api, state: State): Promise<string> {
  const { inputFileId: input_file_id, endpoint, serviceTier } = state;
  const tier = serviceTier === null ? {} : { service_tier: serviceTier };
  const request = { input_file_id, endpoint, completion_window: "24h", ...tier };
  return idOf(await api.postJson("/batches", request, { "idempotency-key": idempotencyKey(state) }));
}

async function followed(batch: { id: string; spentUsd: number | null }, { api, display, now, sleep }: RunDeps) {
  const progress = (shown: Progress) => display.progress(shown);
  try {
    return await follow(api, batch, { now, sleep, progress });
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    throw new Failure(`${error.message}\nThe token may belong to another run. To start a new batch, use --fresh.`);
  }
}

/** Why the input was refused, by the line numbers of the input. No line was run. */
function refusals(document: Document, converted: Converted) {
  const causes = new Causes();
  for (const { line, message, code } of Refusals.parse(document)) {
    const own = line === null ? undefined : converted.lines[line - 1];
    causes.add(own === undefined ? "" : String(own), message ?? code ?? "no reason given");
  }
  return causes;
}
