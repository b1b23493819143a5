/** `fanout batch --cancel -o OUTPUT`: cancels the batch of this output. */
import { segment } from "./server/api.mjs";
import { Failure } from "../failure.mjs";
import { jsonLine, textOf } from "../text/json.mjs";
import { printable, shellWord } from "../text/printable.mjs";
import { Problem } from "./server/problem.mjs";
import { createBatch } from "./run.mjs";
import { readState, statePath, writeState } from "./state.mjs";

/**
 * @param {Pick<import("./setting.mjs").Setting, "output" | "server" | "json">} setting
 * @param {{ api: import("./server/api.mjs").Api, display: import("./display.mjs").Display,
 *   stdout: (text: string) => void }} deps
 * @returns {Promise<number>} The exit status.
 */
export async function cancelBatch({ output, server, json }, { api, display, stdout }) {
  const state = await readState(output);
  if (state === null)
    throw new Failure(`No batch was started for this output: ${shellWord(statePath(output))} does not exist.`);
  if (state.apiUrl !== server.apiUrl) {
    // The state file may come from anywhere: send the token only to a server that the user names.
    throw new Failure(`The batch is at ${printable(state.apiUrl)}. To use that server, pass it as --url.`);
  }
  if (state.inputFileId === null && state.batchId === null) throw new Failure("No batch was created yet.");
  // The reply of the create request was lost: repeating it with the same key returns the batch.
  const batchId = state.batchId ?? (await createBatch(api, state));
  if (state.batchId === null) await writeState(output, { ...state, batchId });
  const id = printable(batchId);
  try {
    const document = await api.postJson(`/batches/${segment(batchId)}/cancel`, {});
    const status = textOf(document, "status") ?? "cancelling";
    display.note(`Batch ${id} is ${printable(status)}.`);
    if (json) stdout(`${jsonLine({ batch: batchId, status })}\n`);
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 409 && error.status !== 400)) throw error;
    throw new Failure(`Batch ${id} has already ended or cannot be cancelled: ${error.message}`);
  }
  display.note("To write the answers so far, run the original command again, without --cancel.");
  return 0;
}
