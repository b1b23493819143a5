/** The attempts of an executor: those in flight, and those that have ended but are not settled yet. */
import { answerChars } from "../answer.ts";
import {
  ATTEMPTS_PER_MERGE_MS,
  CLAIM_BYTES_MAX,
  HEDGE_REPORT_MS_MAX,
  ROOM_MERGE_MS,
  ROOM_TOGETHER_MS,
  WORKER_GATHER_MS,
} from "../limits.ts";
import type { Settlement } from "../objects/methods/groups.ts";
import type { StartTimer } from "../providers/exchange.ts";
import { Deadlines } from "./deadlines.ts";
import { Paces } from "./paces.ts";
import { areHeadersLimited, type WorkRules } from "./rules.ts";
import { RenewedMap } from "../renewed/map.ts";
import { RenewedSet } from "../renewed/set.ts";

/** An attempt shorter than this, ms, is no LLM's: the gateway limits the speed of such a run, the upstream that of others. */
const SHORT_ATTEMPT_MS = 100;

/**
 * An attempt's model, with its upstream, when it began, epoch ms, and the cap of its answer; absent or null = none is known. `hedgeOf`: of a
 * hedge, the attempt that it may overtake.
 */
export type Begun = { model: string; startedMs: number; capTokens?: number | null; hedgeOf?: string | undefined };

/** `listed` resolves once its end is among those to settle. */
type InFlight = Begun & { abort: AbortController; listed: Promise<void> };

export class Worklist {
  readonly #rules: WorkRules;
  readonly #paces: Paces;
  #running = new RenewedMap<string, InFlight>();
  /**
   * The other attempt of each that is in flight with its hedge. The retry of a lost attempt that is in flight here still is not one: the
   * run takes no answer of that one any more.
   */
  #others = new RenewedMap<string, string>();
  /** Attempts whose headers have not come. */
  #waitingForHeaders = new RenewedMap<string, Begun>();
  /** The model of the newest attempt. */
  #model = "";
  #headersAtMs: number | null = null;
  #ended: Settlement[] = [];
  /** Settlements that a call is delivering: whether it arrives is not known yet. */
  #delivering = new RenewedSet<Settlement>();
  /** The newest instance of the run that has reconciled its leases with this executor; 0 = none has. */
  #epoch = 0;
  #waiting: (() => void)[] = [];
  #wantsRoom = false;
  #roomTimer: { handle: ReturnType<typeof setTimeout>; delayMs: number } | null = null;
  #deadlines = new Deadlines();
  #nudged = false;
  #awaitingNudge: (() => void)[] = [];
  /** Runs while the executor waits for further answers to settle with the first. */
  #mergeTimer: ReturnType<typeof setTimeout> | null = null;
  /** Whether it has waited long enough for them. */
  #isDue = false;
  #batchingDelayMs = 0;
  /** Whether only the end of all waits for what ends. */
  #mayGather = false;
  /** The last attempt was so short that settling is what limits the run: then it pays to settle more at once. */
  #isShort = false;

  /** @param paces What the isolate knows of the calls of each model. */
  constructor(rules: WorkRules, paces: Paces = new Paces()) {
    this.#rules = rules;
    this.#paces = paces;
  }

  /** Starts a timer for an attempt. */
  get timer(): StartTimer {
    return this.#deadlines.start;
  }

  /** Sets how long to wait for further answers before the first is settled, ms. Zero is a millisecond on workerd. */
  setBatchingDelay(delayMs: number): void {
    this.#batchingDelayMs = delayMs;
  }

  /** Sets whether answers may gather for a while, because only the end of all waits for them. The last one waits for none. */
  setGathering(mayGather: boolean): void {
    const isOver = this.#mayGather && !mayGather;
    this.#mayGather = mayGather;
    if (!isOver) return;
    this.#stopMergeTimer();
    this.#wakeLater();
  }

  /** Stops the timers that outlive attempts. */
  close(): void {
    this.#deadlines.close();
    this.#stopRoomTimer();
    this.#stopMergeTimer();
  }

  /** Whether nothing runs, nothing is left to settle, and no further claim was requested. */
  get idle(): boolean {
    return this.#running.size === 0 && this.#ended.length === 0 && !this.#nudged;
  }

  /** Whether something is left to settle. */
  get hasEnded(): boolean {
    return this.#ended.length > 0;
  }

  /** Whether something is left to settle that should not wait for further answers. */
  get mustSettle(): boolean {
    const ended = this.#ended.length;
    // When nothing runs any more, there is nothing to wait for.
    return ended > 0 && (this.#isDue || ended >= (ended + this.#running.size) * this.#rules.settleAtShare);
  }

  /** Whether another claim was requested since the last. */
  get isNudged(): boolean {
    return this.#nudged;
  }

  /** Number of attempts in flight. */
  get running(): number {
    return this.#running.size;
  }

  /** How many attempts may begin now. */
  get room(): number {
    const { callsMax, waitingMax } = this.#rules;
    return Math.max(0, Math.min(callsMax - this.#running.size, waitingMax - this.#waitingForHeaders.size));
  }

  /** How many attempts may wait for headers at once. */
  get waitingMax(): number {
    return this.#rules.waitingMax;
  }

  /** How many attempts it can have in flight, if it has waited so long for headers and got none. */
  reachAfter(waitedMs: number): number {
    if (this.#waitingForHeaders.size < this.#rules.waitingMax) return this.#rules.callsMax;
    return this.#paces.reachOf(this.#model, waitedMs, this.#rules);
  }

  /** When headers came last, epoch ms; null = none have. */
  get headersAtMs(): number | null {
    return this.#headersAtMs;
  }

  /** Every attempt that is in flight or whose settlement may not have arrived. */
  held(): string[] {
    const unsettled = [...this.#ended, ...this.#delivering].map(({ attemptId }) => attemptId);
    return [...this.#running.keys(), ...unsettled];
  }

  /** The same, for an instance of the run. Jobs of instances before `epoch` are late from now on. */
  reconcile(epoch: number): string[] {
    this.#epoch = Math.max(this.#epoch, epoch);
    return this.held();
  }

  /** Whether jobs of that instance of the run are late: a newer instance has reconciled its leases meanwhile. */
  isReplaced(epoch: number): boolean {
    return epoch < this.#epoch;
  }

  attemptIds(): string[] {
    return [...this.#running.keys()];
  }

  /** Follows an attempt to its end. `ended` must not reject. */
  add(attemptId: string, begun: Begun, abort: AbortController, ended: Promise<Settlement>): void {
    const { model } = begun;
    this.#model = model;
    const { hedgeOf } = begun;
    const listed = ended.then(async (settlement) => {
      const other = this.#others.get(attemptId);
      this.#others.delete(attemptId);
      if (other !== undefined) this.#others.delete(other);
      if (other !== undefined && settlement.outcome.kind === "success") await this.#abortFirst(other);
      this.#list(attemptId, model, settlement);
    });
    if (hedgeOf !== undefined && this.#running.has(hedgeOf)) {
      this.#others.set(attemptId, hedgeOf);
      this.#others.set(hedgeOf, attemptId);
    }
    this.#running.set(attemptId, { ...begun, abort, listed });
    this.#waitingForHeaders.set(attemptId, begun);
  }

  #list(attemptId: string, model: string, settlement: Settlement): void {
    this.#running.delete(attemptId);
    this.#waitingForHeaders.delete(attemptId);
    if (settlement.outcome.kind === "success") this.#paces.answered(model, settlement.outcome.latencyMs);
    this.#isShort = settlement.outcome.latencyMs < SHORT_ATTEMPT_MS;
    this.#ended.push(settlement);
    // It may be made again.
    if (settlement.outcome.kind !== "success") this.setGathering(false);
    this.#wakeLater();
  }

  /**
   * The other attempt of its call was answered: it is aborted, and settles before that. The run, which would end it with the answer, does
   * not know what was seen of it.
   */
  async #abortFirst(attemptId: string): Promise<void> {
    this.abort([attemptId]);
    const late = Promise.withResolvers<void>();
    const stop = this.#deadlines.start(HEDGE_REPORT_MS_MAX, late.resolve);
    await Promise.race([this.#running.get(attemptId)?.listed, late.promise]);
    stop();
  }

  /** The headers of an attempt's answer have come: another may wait for its own. */
  headersArrived(attemptId: string, nowMs: number): void {
    const begun = this.#waitingForHeaders.get(attemptId);
    if (begun === undefined) return;
    this.#waitingForHeaders.delete(attemptId);
    this.#headersAtMs = nowMs;
    this.#paces.headersArrived(begun.model, nowMs - begun.startedMs);
    if (this.#wantsRoom) this.#roomMade();
  }

  /** Others may begin: several together, for each claim costs a commit, or a single one after a while. */
  #roomMade(): void {
    const { room } = this;
    const { waitingMax } = this.#rules;
    const isHalf = room >= waitingMax / 2;
    if (room === 0) return;
    if (room >= waitingMax || (isHalf && !areHeadersLimited(waitingMax))) return this.#wakeAll();
    const delayMs = isHalf ? ROOM_TOGETHER_MS : ROOM_MERGE_MS;
    if (this.#roomTimer !== null && this.#roomTimer.delayMs <= delayMs) return;
    this.#stopRoomTimer();
    const elapsed = (): void => {
      this.#roomTimer = null;
      if (this.#wantsRoom && this.room > 0) this.#wakeAll();
    };
    this.#roomTimer = { handle: setTimeout(elapsed, delayMs), delayMs };
  }

  #stopRoomTimer(): void {
    if (this.#roomTimer !== null) clearTimeout(this.#roomTimer.handle);
    this.#roomTimer = null;
  }

  /** Takes what has ended, to settle it: as much as one call carries. */
  takeEnded(): Settlement[] {
    let count = 0;
    for (let chars = 0; count < this.#ended.length && chars < CLAIM_BYTES_MAX; count++) {
      const outcome = this.#ended[count]?.outcome;
      chars += outcome?.kind === "success" ? answerChars(outcome) : (outcome?.body?.length ?? 0);
    }
    const ended = this.#ended.splice(0, count);
    for (const settlement of ended) this.#delivering.add(settlement);
    // A timer that ran on would cut the next wait short.
    this.#stopMergeTimer();
    this.#isDue = this.#ended.length > 0;
    this.#nudged = false;
    return ended;
  }

  /** Settlements have arrived. */
  delivered(settlements: readonly Settlement[]): void {
    for (const settlement of settlements) this.#delivering.delete(settlement);
  }

  /** Returns settlements that may not have arrived. */
  putBack(settlements: Settlement[]): void {
    this.delivered(settlements);
    if (settlements.length === 0) return;
    this.#ended.unshift(...settlements);
    this.#isDue = true;
    this.#wake();
  }

  /** Requests another claim. */
  nudge(): void {
    this.#nudged = true;
    const awaiting = this.#awaitingNudge;
    this.#awaitingNudge = [];
    for (const resolve of awaiting) resolve();
    this.#wake();
  }

  /** Resolves at the next nudge. */
  nudged(): Promise<void> {
    return new Promise((resolve) => this.#awaitingNudge.push(resolve));
  }

  /**
   * Resolves when an attempt has ended that is not taken yet, another claim was requested, or, if it `wantsRoom`, another
   * attempt may begin.
   */
  changed(wantsRoom = false): Promise<"changed"> {
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve("changed"));
      this.#wantsRoom = wantsRoom;
      if (this.#nudged) this.#wake();
      else this.#wakeLater();
    });
  }

  /** Slots wait: who waits for a change gets to know as soon as another attempt may begin. */
  offerRoom(): void {
    this.#wantsRoom = true;
    if (this.room > 0) this.#wakeAll();
  }

  /** Aborts attempts: each ends with the outcome of an aborted attempt. */
  abort(attemptIds: readonly string[]): void {
    for (const attemptId of attemptIds) this.#running.get(attemptId)?.abort.abort();
  }

  /** Aborts each attempt in flight after the time that `lastsMs` grants it, unless it has ended by then. */
  windDown(lastsMs: (begun: Begun) => number): void {
    for (const [attemptId, begun] of [...this.#running]) {
      const ms = lastsMs(begun);
      if (ms <= 0) begun.abort.abort();
      else this.#deadlines.start(ms, () => this.abort([attemptId]));
    }
  }

  /**
   * Waits for further answers, so that those that arrive together are settled together: a call costs more than the wait, which
   * counts from the first of them, also while another call is under way.
   */
  #wakeLater(): void {
    if (this.#ended.length === 0) return;
    if (this.mustSettle) return this.#wake();
    const due = (): void => {
      this.#mergeTimer = null;
      this.#isDue = true;
      this.#wake();
    };
    const { mergeMs, shortMergeMs } = this.#rules;
    const longMergeMs = Math.max(mergeMs, Math.floor(this.#running.size / ATTEMPTS_PER_MERGE_MS));
    const plainMs = this.#isShort ? Math.max(shortMergeMs, this.#batchingDelayMs) : longMergeMs;
    const delayMs = this.#mayGather ? Math.max(plainMs, WORKER_GATHER_MS) : plainMs;
    this.#mergeTimer ??= setTimeout(due, delayMs);
  }

  #stopMergeTimer(): void {
    if (this.#mergeTimer !== null) clearTimeout(this.#mergeTimer);
    this.#mergeTimer = null;
  }

  #wake(): void {
    if (this.#ended.length > 0 || this.#nudged) this.#wakeAll();
  }

  #wakeAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#wantsRoom = false;
    this.#stopRoomTimer();
    for (const resolve of waiting) resolve();
  }
}
