/** Reading the run's log. */
import { LOG_REPLY_CHARS_MAX } from "../../../src/limits.ts";
import type { LogPage } from "../../../src/run-api/log.ts";
import type { RunState } from "../state.ts";
import type { FollowedRows } from "./followed.ts";
import type { LogRows } from "./rows.ts";

/** Stored events after number `after`, up to the size of one reply; `followed`: as a follower gets them. */
export function logPage(
  run: Pick<RunState, "settings" | "isFinal" | "engine" | "readableSeq">,
  { log, followed }: { log: Pick<LogRows, "after">; followed: FollowedRows | null },
  after: number,
): LogPage {
  const { id, parentId, depth } = run.settings;
  const rows = followed === null ? log.after(after, LOG_REPLY_CHARS_MAX) : followed.after(after);
  const last = rows.at(-1)?.last ?? after;
  const final = run.isFinal && !run.engine.log.pending && last >= run.readableSeq;
  return { rows, run: { id, parentId, depth }, final };
}
