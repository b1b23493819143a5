/**
 * What the Worker of a group's client does beyond a lane: it follows its group to the end, lets lanes join it while headers
 * keep it from sending more, and hands the group over when its client leaves.
 *
 * The states of a slot when the client leaves, and what becomes of it:
 *
 *   queued, or waiting for a retry       a lane makes its attempt: the run starts lanes when the Worker says that it leaves
 *   in flight here                       it ends here within `WORKER_LEAVE_MS` and is settled, else it is given up and
 *                                        counts as lost: it stays charged, and a lane makes the next attempt
 *   granted, in a reply on its way here  it is sent, and then as above
 *   ended here, not settled              it is settled
 *   in flight in a lane                  nothing changes
 *
 * If the Worker ends without a word, its leases expire, and the run's alarm starts lanes.
 */
import type { ClaimReply, OwnGroup, Settlement, WorkerState } from "../objects/methods/groups.ts";
import type { Claim, Duty, Step } from "./executor.ts";
import { Fullness, type FullnessDeps } from "./fullness.ts";
import type { Worklist } from "./worklist.ts";

export type WorkerDutyDeps = FullnessDeps & {
  /** What a reply says of the group, and the settlements that it acknowledges. */
  replied: (group: OwnGroup, settlements: readonly Settlement[]) => void;
  /** Whether a lost executor of the same name may have left attempts: the first claim says which this one has, none. */
  mayReplace: boolean;
};

export class WorkerDuty implements Duty {
  readonly #deps: WorkerDutyDeps;
  /** Whether a reply may have been lost since the last that came: the next claim names all attempts that the Worker has. */
  #inDoubt: boolean;
  readonly #fullness: Fullness;
  #leaving: "no" | "yes" | "announced" = "no";
  #gaveUp: string[] = [];
  #hasGroupEnded = false;

  constructor(deps: WorkerDutyDeps) {
    this.#deps = deps;
    this.#inDoubt = deps.mayReplace;
    this.#fullness = new Fullness(deps);
  }

  /** The client has left: the Worker completes what it has begun, and claims nothing any more. */
  leave(): void {
    if (this.#leaving !== "no") return;
    this.#leaving = "yes";
    this.#deps.nudge();
  }

  /** The Worker cannot bring these attempts to their end. */
  giveUp(attemptIds: readonly string[]): void {
    this.#gaveUp.push(...attemptIds);
    this.#deps.nudge();
  }

  /** Waiting is free. */
  get waitsWithoutCalls(): boolean {
    return true;
  }

  /** Stops the timer. */
  close(): void {
    this.#fullness.close();
  }

  next(work: Worklist, claimMore: boolean): Step {
    if (this.#hasGroupEnded) return "end";
    if (work.mustSettle || this.#leaving === "yes" || this.#gaveUp.length > 0) return "claim";
    if (this.#leaving === "announced") return work.running === 0 ? "leave" : work.isNudged ? "claim" : "idle";
    // What has ended goes along with any claim, and is replied to at once.
    const waits = work.hasEnded ? "claim" : "wait";
    // Without calls of its own it waits for what the run decides, as for the end of a pause.
    if (work.running === 0 || (claimMore && work.room > 0)) return waits;
    if (!work.isNudged) return "idle";
    return this.#fullness.mustReport ? "claim" : waits;
  }

  reach(): number | null {
    return this.#fullness.reach;
  }

  stateOf(work: Worklist): WorkerState {
    return {
      covers: this.#fullness.reach,
      // Each time that it reaches less; the run's alarm starts lanes that end while they are needed.
      asksForLanes: this.#leaving === "yes" || this.#fullness.mustReport,
      leaves: this.#leaving !== "no",
      holds: this.#inDoubt ? work.held() : null,
      gaveUp: this.#gaveUp,
    };
  }

  replied(reply: ClaimReply, { settlements, worker }: Pick<Claim, "settlements" | "worker">, work: Worklist): void {
    if (worker?.leaves === true) this.#leaving = "announced";
    if (worker?.covers != null) this.#fullness.reported(worker.covers);
    if (worker?.holds != null) {
      this.#inDoubt = false;
      // Jobs of an instance that was asked before are lost: this one has counted them so.
      work.reconcile(reply.epoch);
    }
    const sent = worker?.gaveUp.length ?? 0;
    if (sent > 0) this.#gaveUp = this.#gaveUp.slice(sent);
    const { group } = reply;
    if (group === undefined) return;
    work.abort(group.aborted);
    if (group.view !== null) {
      this.#hasGroupEnded = true;
      work.abort(work.attemptIds());
    }
    this.#deps.replied(group, settlements);
  }

  slotsWait(mayWait: boolean, work: Worklist): void {
    this.#fullness.note(mayWait && work.room === 0, work);
  }

  failed(): void {
    this.#inDoubt = true;
  }
}
