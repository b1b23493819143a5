/** Takes pages of a group that is not open yet. */
import type { CallPage } from "../../../src/run/queue/call-page.ts";
import type { Refused } from "../../../src/objects/methods/types.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import { charsOf, dropStaged, stagePages } from "../groups/open.ts";

/** `bodyBytes`: what of the group is in R2 by now. */
type Staged = { openKey: string; pages: readonly CallPage[]; bodyBytes: number };

/** Stores the pages; null, or why the run does not take them. */
export async function stage(life: RunLifecycle, staged: Staged): Promise<Refused | null> {
  return await life.withSpace(staged.bodyBytes + charsOf(staged.pages), () => {
    const { store, active: run } = life;
    if ("reason" in run) {
      if (life.run !== null) dropStaged(life.run, store, staged.openKey);
      return { ok: false, reason: run };
    }
    const refused = stagePages(run, store, staged, Date.now());
    // The client may never come back: the alarm drops what is not opened in time, even if this instance is gone by then.
    life.alarm.arm(Date.now());
    return refused === null ? null : { ok: false, reason: refused };
  });
}
