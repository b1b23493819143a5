/** Reading the run's log. */
import type { LogPage } from "../../../src/objects/methods/log.ts";
import type { RunState } from "../state.ts";
import type { Pace } from "./pace.ts";
import type { LogPages } from "./pages.ts";

/** What of the object is read; `run` null = there is none, or it was deleted meanwhile. */
type Logged = {
  readonly run: Pick<RunState, "settings" | "isFinal" | "engine" | "readableSeq"> | null;
  readonly followed: LogPages;
  readonly whole: LogPages;
  readonly pace: Pace;
};

/** A page of the stored events after number `after`, at its turn. */
export function logPage(logged: Logged, isFollower: boolean, after: number): Promise<LogPage | null> {
  return logged.pace.page(() => {
    const { run, followed, whole } = logged;
    if (run === null) return null;
    const { id, parentId, depth } = run.settings;
    const rows = (isFollower ? followed : whole).after(after);
    const last = rows.at(-1)?.last ?? after;
    const final = run.isFinal && !run.engine.log.pending && last >= run.readableSeq;
    return { rows, run: { id, parentId, depth }, final };
  });
}
