/** How a batch has ended: notes and the last line on standard error, and with `--json` one document on standard output. */
import { pageUrl, summaryLine } from "../text/summary.ts";
import { jsonLine } from "../text/json.ts";
import { shellWord } from "../text/printable.ts";
import { countText } from "../text/amounts.ts";
import type { Causes } from "./causes.ts";
import type { Display } from "./display.ts";
import type { Api } from "./server/api.ts";
import type { Server } from "./server/server.ts";

/**
 * `status`: the batch's. `causes`: of failed lines; of a refused input, its errors by line number. `costUsd`: null if unknown.
 */
export type Outcome = {
  batchId: string;
  status: string;
  completed: number;
  failed: number;
  strangers: number;
  causes: Causes;
  costUsd: number | null;
};

/** `now`: epoch ms. */
export type ReportDeps = { api: Api; display: Display; stdout: (text: string) => void; now: () => number };

/** Returns the exit status. */
export async function report(
  outcome: Outcome,
  {
    output,
    quiet,
    json,
    server,
    startedAtMs,
  }: { output: string; quiet: boolean; json: boolean; server: Server; startedAtMs: number },
  { api, display, stdout, now }: ReportDeps,
): Promise<number> {
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

/** Why the input was refused, by the line numbers of the input. No line was run. */
function sayRefused({ causes }: Outcome, display: Display) {
  for (const cause of causes.report((line) => (line === "" ? "" : `Line ${line}`))) display.error(cause);
  display.error("The server refused the input. No call was made and nothing was charged.");
}

function sayEnded(
  { status, completed, failed, strangers, causes }: Outcome,
  { output, display }: { output: string; display: Display },
) {
  if (strangers > 0) display.note(`Ignored ${countText(strangers)} answers that belong to no line.`);
  for (const cause of causes.report((id) => id)) display.note(`  ${cause}`);
  const ended = status === "completed" ? "" : `The batch ${status === "expired" ? "has expired" : "was cancelled"}. `;
  const counts = `${countText(completed)} ${completed === 1 ? "line" : "lines"} completed${failed > 0 ? `, ${countText(failed)} failed` : ""}`;
  display.note(`${ended}${counts}: ${shellWord(output)}`);
}
