/** How a batch has ended: notes and the last line on standard error, and with `--json` one document on standard output. */
import { pageUrl, summaryLine } from "../text/summary.mjs";
import { jsonLine } from "../text/json.mjs";
import { shellWord } from "../text/printable.mjs";
import { countText } from "./progress.mjs";

/**
 * `status`: the batch's. `causes`: of failed lines; of a refused input, its errors by line number. `costUsd`: null if unknown.
 * @typedef {{
 *   batchId: string, status: string, completed: number, failed: number, strangers: number,
 *   causes: import("./causes.mjs").Causes, costUsd: number | null,
 * }} Outcome
 */

/**
 * @param {Outcome} outcome
 * @param {{ output: string, quiet: boolean, json: boolean, server: import("./server/server.mjs").Server, startedAtMs: number }} about
 * @param {Pick<import("./run.mjs").RunDeps, "api" | "display" | "stdout" | "now">} deps
 * @returns {Promise<number>} The exit status.
 */
export async function report(outcome, { output, quiet, json, server, startedAtMs }, { api, display, stdout, now }) {
  const { batchId, status, completed, failed, causes, costUsd } = outcome;
  if (status === "failed") sayRefused(outcome, display);
  else sayEnded(outcome, { output, display });
  // A server that does not say what is spent has no page of the run either.
  const runId = costUsd === null || (quiet && !json) ? null : await api.runId();
  const url = runId === null || server.gatewayUrl === null ? null : pageUrl(server.gatewayUrl, runId);
  const durationMs = now() - startedAtMs;
  const place = url ?? `batch ${batchId}`;
  display.note(summaryLine({ completed, failed, replayed: 0, because: null, costUsd, durationMs, place }));
  if (json) {
    const result = { batch: batchId, status, output: status === "failed" ? null : output, completed, failed };
    const figures = { run: runId, url, cost_usd: costUsd, duration_ms: durationMs };
    stdout(`${jsonLine({ ...result, causes: causes.top(), ...figures })}\n`);
  }
  if (status === "failed") return 3;
  if (status !== "completed") return 4;
  return failed > 0 ? 2 : 0;
}

/**
 * Why the input was refused, by the line numbers of the input. No line was run.
 * @param {Outcome} outcome
 * @param {import("./display.mjs").Display} display
 */
function sayRefused({ causes }, display) {
  for (const cause of causes.report((line) => (line === "" ? "" : `Line ${line}`))) display.error(cause);
  display.error("The server refused the input. No call was made and nothing was charged.");
}

/**
 * @param {Outcome} outcome
 * @param {{ output: string, display: import("./display.mjs").Display }} about
 */
function sayEnded({ status, completed, failed, strangers, causes }, { output, display }) {
  if (strangers > 0) display.note(`Ignored ${countText(strangers)} answers that belong to no line.`);
  for (const cause of causes.report((id) => id)) display.note(`  ${cause}`);
  const ended = status === "completed" ? "" : `The batch ${status === "expired" ? "has expired" : "was cancelled"}. `;
  const counts = `${countText(completed)} ${completed === 1 ? "line" : "lines"} completed${failed > 0 ? `, ${countText(failed)} failed` : ""}`;
  display.note(`${ended}${counts}: ${shellWord(output)}`);
}
