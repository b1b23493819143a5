/**
 * The second half of a turn: after the operations of a turn have changed the run, it hands out permits, writes everything
 * in one transaction, and only then sends replies. If it throws, nothing was written and the object restarts from its rows.
 */
import { giveUpStopped } from "../../../src/run/steps/stopping.ts";
import { expireQueued } from "../../../src/run/steps/deadline.ts";
import { dispatch } from "../../../src/run/steps/dispatch.ts";
import { startHedges } from "../../../src/run/steps/start-hedges.ts";
import { replayQueued } from "../../../src/run/steps/recall.ts";
import { endOwed, expireLeases } from "../../../src/run/steps/settle.ts";
import {
  leaseApart,
  shardText,
  workerOf,
  type AttemptInFlight,
  type Shard,
  type StoredShard,
} from "../../../src/run/leases/shard.ts";
import type { Group } from "../../../src/run/group/group.ts";
import { attemptIdOf, groupSeqOf } from "../../../src/run/queue/slot.ts";
import { releaseUnclaimed } from "../../../src/run/steps/provider-claim.ts";
import type { Reason } from "../../../src/errors.ts";
import { CARRIED_CHARS_MAX, SWEEP_MS } from "../../../src/limits.ts";
import { abandon } from "../calls.ts";
import { openServices } from "../groups/services.ts";
import { holdGranted } from "../executors/leases.ts";
import { ownGroupOf } from "../groups/own-group.ts";
import { ofTurn, releaseExecutors, sendReplies } from "../executors/replies.ts";
import type { OwnGroup } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import { groupResult } from "../store/records.ts";
import type { RunStore } from "../store/store.ts";
import { advanceTools } from "../tool-calls.ts";

/** What a turn writes beside what it must; null = nothing. */
export type Flush = "lag" | "log" | null;

export class Turns {
  readonly #run: RunState;
  readonly #store: RunStore;
  /** The budget refusal that the first slot in the queue waits to avoid, as of the last turn. */
  #waitingFor: Reason | null = null;
  /** When a turn last looked for expired leases. */
  #lookedAtMs = 0;

  constructor(run: RunState, store: RunStore) {
    this.#run = run;
    this.#store = store;
  }

  /**
   * Finishes a turn. `flush`: "lag" also writes what may otherwise wait for a later row, "log" also makes the events of
   * the log readable.
   */
  finish(nowMs: number, flush: Flush): void {
    const run = this.#run;
    this.#loseExpired(nowMs);
    run.engine.emitWindows(nowMs);
    const late = expireQueued(run.engine, this.#waitingFor, nowMs);
    giveUpStopped(run.engine, nowMs);
    if (openServices(run, this.#store, nowMs)) run.laneStarts.need();
    if (releaseUnclaimed(run.engine, nowMs)) run.laneStarts.need();
    endOwed(run.engine, nowMs);
    replayQueued(run.engine, nowMs);
    const offers = run.waitingExecutors.offers();
    const hedges = startHedges(run.engine, offers, nowMs);
    const dispatched = dispatch(run.engine, offers, nowMs);
    dispatched.assignments.push(...hedges);
    this.#waitingFor = dispatched.waitingFor;
    if (dispatched.hasResumed) run.laneStarts.mayHaveLeft();
    dispatched.refused.push(...late);
    holdGranted(run, dispatched.assignments);
    advanceTools(run, nowMs);
    run.noteEscalation();
    run.noteWebhooks(nowMs);
    const mustWrite = flush !== null || run.engine.mustWrite || run.hasWrites;
    const ended = mustWrite ? this.#write(nowMs, flush) : [];
    const ownGroups = (seq: number): OwnGroup => ownGroupOf(run, this.#store, seq, nowMs);
    const replies = ofTurn(run, ownGroups, nowMs);
    sendReplies(run, dispatched, replies);
    run.waitingCalls.release(nowMs);
    for (const seq of ended) run.groupEnded(seq);
    releaseExecutors(run, replies);
    run.forgetWritten();
    run.waitingReaders.sweep(nowMs);
  }

  /**
   * Ends attempts whose leases are over: the alarm looks late for single calls. A stored one is made again by a lane, if its Worker is gone.
   * Rarely, because it visits every attempt.
   */
  #loseExpired(nowMs: number): void {
    if (nowMs < this.#lookedAtMs + SWEEP_MS) return;
    this.#lookedAtMs = nowMs;
    const { engine, workers, presentExecutors, laneStarts } = this.#run;
    if (expireLeases(engine, nowMs) === 0) return;
    if (workers.expire((seq) => presentExecutors.has(workerOf(seq)), nowMs)) laneStarts.need();
  }

  /** Replies to callers that have waited long enough, and withdraws calls whose Worker is gone: true if there are any. */
  sweep(nowMs: number): boolean {
    this.#run.waitingExecutors.sweep(nowMs, (executor, room) => this.#run.presentExecutors.replied(executor, room));
    this.#run.waitingReaders.sweep(nowMs);
    this.#run.toolPermits.release(nowMs);
    const abandoned = this.#run.waitingCalls.sweep(nowMs);
    abandon(this.#run, abandoned, nowMs);
    return abandoned.length > 0;
  }

  /** The stored call whose row takes the shard that the turn writes, and the shard's text; null = shards are rows. */
  #carriedIn(
    { shards, groups }: { shards: readonly Shard[]; groups: readonly Group[] },
    written: Omit<StoredShard, "totals" | "leases">,
    nowMs: number,
  ): { by: number; text: string } | null {
    const by = this.#run.carriedShards.carrierOf({ shards, groups }, nowMs);
    const [shard] = shards;
    if (by === null || shard === undefined || !this.#store.hasSingles || !this.#store.singles.has(by)) return null;
    const text = shardText(shard, written);
    return text.length + this.#run.engine.log.newTailChars > CARRIED_CHARS_MAX ? null : { by, text };
  }

  /** Writes what the turn changed. Returns the groups that ended in it. */
  #write(nowMs: number, flush: Flush): number[] {
    const { engine } = this.#run;
    const own = this.#run.takeWrites();
    const singles = this.#run.takeSingles();
    const { shards, apart, slots, groups, credits } = engine.takeWrites((lease) => singles.has(seqOf(lease)));
    const { windows, ...apartUpTo } = engine.storedWindows;
    const written =
      this.#store.hasSingles || singles.size > 0 ? { upTo: engine.log.lastSeq, ...this.#run.epochOfShards } : apartUpTo;
    const ofCarrier = windows === undefined ? written : { ...written, windows };
    const carried = singles.size > 0 ? null : this.#carriedIn({ shards, groups }, ofCarrier, nowMs);
    if (carried === null)
      for (const id of this.#run.carriedShards.takeOthers(shards, nowMs)) shards.push(engine.shard(id));
    const [carrier] = shards;
    // Any row of a shard may hold new events, so the first that is written takes those that are in no row yet.
    const log = { carrier: carrier?.id ?? null, asRows: flush === "log", isPart: carried !== null };
    const { rows, tail } = engine.log.write(log);
    const others =
      own.length + singles.size + slots.length + groups.length + (rows === null ? 0 : 1) + (credits === null ? 0 : 1);
    if (shards.length + others === 0) return [];
    const settled = carried === null ? this.#run.settledGroups(nowMs) : {};
    const texts = shards.map((shard) => {
      const { id } = shard;
      if (shard !== carrier) return { id, text: shardText(shard, written), tail: engine.log.tailOf(id) };
      return { id, text: carried?.text ?? shardText(shard, { ...ofCarrier, ...settled }), tail };
    });
    const write = (): void => {
      for (const writeOwn of own) writeOwn();
      const leases = new Map(apart.map(({ lease, shard }) => [seqOf(lease), leaseApart(lease, shard)]));
      const results = new Map(groups.map((group) => [group.header.seq, groupResult(group, nowMs)]));
      const further = this.#store.putSingles(singles, leases, { slots, results });
      if (credits !== null) this.#store.meta.set("credits", credits);
      const hasLease = (slotId: number): boolean => engine.attempts.has(attemptIdOf(slotId, 1));
      if (carried === null) for (const shard of texts) this.#store.putShard(shard);
      this.#store.putProgress(further, results, { hasLease, carried: { by: carried?.by ?? null, shard: texts[0] } });
      if (rows !== null) this.#store.log.put(rows);
    };
    // One row is one statement, which is all or nothing by itself; a transaction around it would double its cost.
    if (shards.length === 1 && others === 0) write();
    else this.#store.transaction(write);
    this.#run.written(rows?.lastSeq ?? null, { shards, slots });
    if (carried !== null && carrier !== undefined) this.#run.carriedShards.carried(carrier.id);
    return groups.filter((group) => group.done).map((group) => group.header.seq);
  }
}

/** The number of an attempt's group; that of a single call without one is no group's. */
function seqOf({ slotId }: AttemptInFlight): number {
  return slotId === null ? -1 : groupSeqOf(slotId);
}
