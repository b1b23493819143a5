/** `fanout batch --cancel -o OUTPUT`: stops the batch that the output waits for. */
import { segment } from "./api.mjs";
import { Failure } from "./failure.mjs";
import { textOf } from "./json.mjs";
import { printable, shellWord } from "./printable.mjs";
import { Problem } from "./problem.mjs";
import { createBatch } from "./run.mjs";
import { readState, statePath, writeState } from "./state.mjs";

/**
 * @param {Pick<import("./setting.mjs").Setting, "output" | "server">} setting
 * @param {{ api: import("./api.mjs").Api, display: import("./display.mjs").Display }} deps
 * @returns {Promise<number>} The exit status.
 */
export async function cancelBatch({ output, server }, { api, display }) {
  const state = await readState(output);
  if (state === null)
    throw new Failure(`There is no ${shellWord(statePath(output))}: no batch was begun for this output.`);
  if (state.apiUrl !== server.apiUrl) {
    // The file may come from anywhere: the token goes only where the person says.
    throw new Failure(`The batch is at ${printable(state.apiUrl)}. Name that server with --url.`);
  }
  if (state.inputFileId === null && state.batchId === null) throw new Failure("No batch was begun yet.");
  // A create whose answer was lost: asked again under its key, it tells which batch it was.
  const batchId = state.batchId ?? (await createBatch(api, state));
  if (state.batchId === null) await writeState(output, { ...state, batchId });
  const id = printable(batchId);
  try {
    const document = await api.postJson(`/batches/${segment(batchId)}/cancel`, {});
    display.note(`Batch ${id} is ${printable(textOf(document, "status") ?? "cancelling")}.`);
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 409 && error.status !== 400)) throw error;
    throw new Failure(`Batch ${id} has ended already, or cannot be cancelled: ${error.message}`);
  }
  display.note("Start the same command as before, without --cancel, for what is done.");
  return 0;
}
