/** `fanout batch --cancel -o OUTPUT`: cancels the batch of this output. */
import { segment, type Api } from "./server/api.ts";
import { Failure } from "../failure.ts";
import { jsonLine, textOf } from "../text/json.ts";
import { printable, shellWord } from "../text/printable.ts";
import { Problem } from "./server/problem.ts";
import { createBatch } from "./run.ts";
import { readState, statePath, writeState } from "./state.ts";
import type { Display } from "./display.ts";
import type { Setting } from "./setting.ts";

/** Returns the exit status. */
export async function cancelBatch(
  { output, server, json }: Pick<Setting, "output" | "server" | "json">,
  { api, display, stdout }: { api: Api; display: Display; stdout: (text: string) => void },
): Promise<number> {
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
