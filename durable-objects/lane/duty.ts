/** What a lane does: it serves every group of its run while there is work, and then ends. */
import type { ClaimReply } from "../../src/objects/methods/groups.ts";
import type { Claim, Duty, Step } from "../../src/executors/executor.ts";
import { Fullness, type FullnessDeps } from "../../src/executors/fullness.ts";
import type { Worklist } from "../../src/executors/worklist.ts";

export class LaneDuty implements Duty {
  readonly #fullness: Fullness;

  constructor(deps: FullnessDeps) {
    this.#fullness = new Fullness(deps);
  }

  next(work: Worklist, claimMore: boolean): Step {
    if (work.hasEnded || this.#fullness.mustReport) return "claim";
    if (work.room > 0 && (claimMore || work.isNudged)) return "wait";
    if (work.isNudged) return "claim";
    return work.idle ? "leave" : "idle";
  }

  stateOf(): null {
    return null;
  }

  reach(): number | null {
    return this.#fullness.reach;
  }

  replied(_: ClaimReply, { reach }: Pick<Claim, "reach">): void {
    if (reach !== null) this.#fullness.reported(reach);
  }

  slotsWait(mayWait: boolean, work: Worklist): void {
    this.#fullness.note(mayWait && work.room === 0, work);
  }

  failed(): void {
    // Its next claim says the same.
  }

  /** Its object is awake while it waits: the run starts it again. */
  get waitsWithoutCalls(): boolean {
    return false;
  }

  /** Stops the timer. */
  close(): void {
    this.#fullness.close();
  }
}
