/** The last line on standard error of a command that makes calls. Pure. */
import { printable } from "./printable.ts";
import { countText, durationText, usdText } from "./amounts.ts";

/**
 * `replayed`: calls among `completed` that a recorded answer completed. `because`: why the first call failed; null if none did, or
 * if it was said before. `costUsd`: null if the server does not say. `place`: where the run can be seen.
 */
export type Summary = {
  completed: number;
  failed: number;
  replayed: number;
  because: string | null;
  costUsd: number | null;
  durationMs: number;
  place: string;
};

/** "3 calls completed, 1 failed (no such model) · $0.0012 · 4s · http://…/ui/runs/run_…". */
export function summaryLine({ completed, failed, replayed, because, costUsd, durationMs, place }: Summary): string {
  const again = replayed === 0 ? "" : ` (${countText(replayed)} replayed)`;
  const why = failed === 0 || because === null ? "" : ` (${printable(because)})`;
  const calls = `${countText(completed)} ${completed === 1 ? "call" : "calls"} completed${again}, ${countText(failed)} failed${why}`;
  return [calls, costUsd === null ? "cost unknown" : usdText(costUsd), durationText(durationMs), printable(place)].join(
    " · ",
  );
}

/**
 * The address of a run's page.
 * @param gatewayUrl Without a slash at its end.
 */
export function pageUrl(gatewayUrl: string, runId: string): string {
  return `${gatewayUrl}/ui/runs/${encodeURIComponent(runId)}`;
}
