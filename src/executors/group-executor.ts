/**
 * The Worker of a client as the executor of its group: waiting costs nothing here, and the answers are where they are
 * needed. The run object has the last word on everything; if this Worker ends, lanes take over.
 */
import { partsOf } from "../answer.ts";
import type { Answer } from "../call.ts";
import type { Objects } from "../objects/address.ts";
import { startLanes } from "../objects/clients/lanes.ts";
import { workerOf } from "../run/leases/shard.ts";
import { indexOf } from "../run/queue/slot.ts";
import {
  FIRST_CLAIM_MAX,
  WORKER_KEPT_CHARS_MAX,
  WORKER_LEAVE_MS,
  WORKER_MERGE_MS,
  WORKER_SHORT_MERGE_MS,
} from "../limits.ts";
import type { ClaimReply, EndedReply, GroupView, OwnGroup, Settlement, SlotView } from "../objects/methods/groups.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { EndedFeed } from "./ended-feed.ts";
import { openExecutorSocket } from "./executor-socket.ts";
import { Executor, type Claim, type ExecutorDeps } from "./executor.ts";
import { KeptSlots } from "./kept-slots.ts";
import { isolatePaces } from "./paces.ts";
import { lastsMs, type Unwanted } from "./unwanted.ts";
import { WorkerDuty } from "./worker-duty.ts";
import { callsMaxOf, type WorkRules } from "./rules.ts";

export type GroupExecutorDeps = Pick<ExecutorDeps, "execute"> & {
  objects: Objects;
  run: RunCaller;
  /** Fetches of this Worker that may wait for headers at once. */
  waitingFetchesMax: number;
  /** Keeps the Worker running until the promise ends, whether its client waits or not. */
  waitUntil: (promise: Promise<unknown>) => void;
  /** The client's id of a slot. */
  idOf: (index: number) => string | null;
  /** Whether the client is shown slots as they end, rather than all of them when the group has ended. */
  showsSlots: boolean;
};

/** How many attempts a Worker holds. */
function workerRules(waitingFetchesMax: number): WorkRules {
  const callsMax = callsMaxOf(waitingFetchesMax);
  const merge = { settleAtShare: 1, mergeMs: WORKER_MERGE_MS, shortMergeMs: WORKER_SHORT_MERGE_MS };
  return { callsMax, waitingMax: waitingFetchesMax, ...merge };
}

/** How many attempts a Worker requests with the opening of its group. It claims the others once these have left. */
export function firstCapacity(waitingFetchesMax: number): number {
  const { callsMax, waitingMax } = workerRules(waitingFetchesMax);
  return Math.min(callsMax, waitingMax, FIRST_CLAIM_MAX);
}

export class GroupExecutor {
  readonly #seq: number;
  readonly #deps: GroupExecutorDeps;
  readonly #executor: Executor;
  readonly #duty: WorkerDuty;
  readonly #kept = new KeptSlots(WORKER_KEPT_CHARS_MAX);
  readonly #feed: EndedFeed | null;
  readonly #ended: Promise<GroupView | null>;
  #view: GroupView | null = null;

  /**
   * Begins with the attempts that the opening of group `seq` has granted; null = others have opened it. Then an executor of the
   * same name may have been lost before, and its attempts end with the first claim.
   */
  constructor(seq: number, first: ClaimReply | null, deps: GroupExecutorDeps) {
    this.#seq = seq;
    this.#deps = deps;
    const start = { epoch: first?.epoch ?? 0, position: 0 };
    this.#feed = deps.showsSlots ? new EndedFeed(start, WORKER_KEPT_CHARS_MAX) : null;
    if (first?.group !== undefined) this.#feedWith(first.group, start, []);
    this.#duty = new WorkerDuty({
      mayReplace: first === null,
      now: Date.now,
      nudge: () => this.#executor.nudge(),
      after: (ms, callback) => {
        const handle = setTimeout(callback, ms);
        return () => clearTimeout(handle);
      },
      replied: (group, settlements) => this.#replied(group, settlements),
    });
    this.#executor = new Executor(this.#executorDeps(), workerRules(deps.waitingFetchesMax), this.#duty);
    this.#ended = this.#run(first);
    deps.waitUntil(this.#ended);
  }

  /** Resolves with the group when it has ended; null if this Worker has left it or lost its run before. Never rejects. */
  get ended(): Promise<GroupView | null> {
    return this.#ended;
  }

  /** Slots that are known here, from an index on without a gap; empty if that slot must be read from the run. */
  slotsFrom(index: number): SlotView[] {
    return this.#kept.from(index);
  }

  /** The slots as they end; null if the client is not shown them so. */
  get feed(): EndedFeed | null {
    return this.#feed;
  }

  /** The client has left, and its group goes on: this Worker completes what it has begun, and lanes do the rest. */
  leave(): void {
    this.#duty.leave();
    const giveUp = setTimeout(() => {
      const attemptIds = this.#executor.attemptIds();
      this.#duty.giveUp(attemptIds);
      this.#executor.abort(attemptIds);
    }, WORKER_LEAVE_MS);
    const stopTimer = (): void => clearTimeout(giveUp);
    void this.#ended.then(stopTimer);
  }

  /** The client has left, and wants no answers: attempts that an abort would not make cheaper end here, the others are aborted. */
  windDown(abortCostOf: (model: string) => Unwanted["abortCost"]): void {
    const nowMs = Date.now();
    this.#executor.windDown(({ model, startedMs, capTokens = null }) => {
      const elapsedMs = nowMs - startedMs;
      return lastsMs({ elapsedMs, callMs: isolatePaces.callMsOf(model), capTokens, abortCost: abortCostOf(model) });
    });
  }

  async #run(first: ClaimReply | null): Promise<GroupView | null> {
    try {
      await this.#executor.run(first);
    } catch (error) {
      console.error(`the Worker of group ${this.#seq} of ${this.#deps.run.runId} failed; lanes take over`, error);
    } finally {
      this.#duty.close();
      this.#feed?.close();
    }
    return this.#view;
  }

  #executorDeps(): ExecutorDeps {
    const { run, execute } = this.#deps;
    return {
      claim: (claim) => this.#claim(claim),
      openSocket: (listener) => openExecutorSocket(run, workerOf(this.#seq), listener),
      heartbeat: (attemptIds) => run.callOnce<string[]>((stub) => stub.heartbeat(attemptIds)),
      execute,
      paces: isolatePaces,
      now: Date.now,
      random: Math.random,
      wait: (ms) => scheduler.wait(ms),
    };
  }

  async #claim({ settlements, capacity, waits, worker }: Claim): Promise<ClaimReply> {
    const executor = workerOf(this.#seq);
    const after = this.#feed?.after;
    const state = worker === null || after === undefined ? worker : { ...worker, after };
    const reply = await this.#deps.run.callOnce<ClaimReply>((stub) =>
      stub.settleAndClaim(executor, settlements, capacity, waits, state),
    );
    if (after !== undefined && reply.group !== undefined) this.#feedWith(reply.group, after, settlements);
    return reply;
  }

  #replied(group: OwnGroup, settlements: readonly Settlement[]): void {
    if (this.#feed === null && group.ended.length > 0) this.#keep(group, settlements);
    if (group.view !== null) this.#view = group.view;
    if (group.lanes.length === 0) return;
    const { objects, run, waitUntil } = this.#deps;
    // A lane that does not start is started again by the run's alarm.
    waitUntil(startLanes(objects, run.runId, group.lanes));
  }

  /** Keeps the slots that settlements have ended. */
  #keep(group: OwnGroup, settlements: readonly Settlement[]): void {
    for (const slot of this.#viewsOf(group, settlements)) this.#kept.add(slot);
  }

  #feedWith(group: OwnGroup, after: EndedReply["cursor"], settlements: readonly Settlement[]): void {
    this.#feed?.add({ after, slots: this.#viewsOf(group, settlements), upTo: group.upTo ?? null });
  }

  /** The slots that a reply names. It leaves out the answers that settlements have, and the client's ids. */
  #viewsOf({ ended }: OwnGroup, settlements: readonly Settlement[]): SlotView[] {
    const answers = new Map<number, Pick<Answer, "text" | "parts">>();
    for (const { attemptId, outcome } of settlements) {
      const index = indexOf(Number.parseInt(attemptId, 10));
      // Of two attempts of a call, the first that was answered is settled first.
      if (outcome.kind === "success" && !answers.has(index)) answers.set(index, outcome);
    }
    return ended.map((slot) => {
      const answer = slot.text === undefined ? answers.get(slot.index) : { ...slot, text: slot.text };
      const { text = null } = answer ?? {};
      return { ...slot, text, ...(answer !== undefined && partsOf(answer)), id: this.#deps.idOf(slot.index) };
    });
  }
}
