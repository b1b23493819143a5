/** Reading the run's log. */
import type { LogPage } from "../../../src/run-api/log.ts";
import type { RunState } from "../state.ts";
import type { LogPages } from "./pages.ts";

/** A page of the stored events after number `after`. */
export function logPage(
  run: Pick<RunState, "settings" | "isFinal" | "engine" | "readableSeq">,
  pages: LogPages,
  after: number,
): LogPage {
  const { id, parentId, depth } = run.settings;
  const rows = pages.after(after);
  const last = rows.at(-1)?.last ?? after;
  const final = run.isFinal && !run.engine.log.pending && last >= run.readableSeq;
  return { rows, run: { id, parentId, depth }, final };
}
