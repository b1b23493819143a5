/** Reading the run's log. */
import { LOG_REPLY_CHARS_MAX } from "../../../src/limits.ts";
import type { LogPage } from "../../../src/run-api/log.ts";
import type { RunState } from "../state.ts";
import type { LogRows } from "./rows.ts";

/** Stored events after number `after`, up to the size of one reply. */
export function logPage(
  run: Pick<RunState, "settings" | "isFinal" | "engine" | "readableSeq">,
  log: Pick<LogRows, "after">,
  after: number,
): LogPage {
  const { id, parentId, depth } = run.settings;
  const rows = log.after(after, LOG_REPLY_CHARS_MAX);
  const last = rows.at(-1)?.last ?? after;
  const final = run.isFinal && !run.engine.log.pending && last >= run.readableSeq;
  return { rows, run: { id, parentId, depth }, final };
}
