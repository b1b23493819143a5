/** The invariants of a run's engine between any two turns. Throws the first that is violated. */
import assert from "node:assert/strict";
import { DIMENSIONS, addAmounts, zeroAmounts } from "../../src/run/money/ledger.ts";
import type { Group } from "../../src/run/group/group.ts";
import { groupSeqOf, isFinalState, indexOf, SLOT_STATES, slotIdOf, type SlotState } from "../../src/run/queue/slot.ts";
import type { Reason } from "../../src/errors.ts";
import { sumTotals } from "../../src/run/measures/totals.ts";
import { LogAudit } from "./engine-log.ts";
import { GATES } from "./engine-plan.ts";
import type { RunUnderTest } from "./engine-run.ts";
import { followersIn, isLed, queuedIn } from "./engine-waiting.ts";

export class Invariants {
  readonly #run: RunUnderTest;
  readonly #lying: boolean;
  /** Final states of slots, by id. */
  readonly #ended = new Map<number, SlotState>();
  readonly log: LogAudit;

  constructor(run: RunUnderTest, { lying }: { lying: boolean }) {
    this.#run = run;
    this.#lying = lying;
    this.log = new LogAudit(run);
  }

  check(): void {
    this.#money();
    this.#width();
    this.#queue();
    for (const group of this.#run.state.groups.values()) this.#group(group);
    this.log.check();
  }

  /** After the run has finished: nothing is left over, and every slot of every group has one end. */
  checkOver(): void {
    const { state, rows } = this.#run;
    assert.deepEqual(state.ledger.reserved, zeroAmounts(), "nothing stays reserved");
    assert.equal(state.queue.readyCount + state.queue.delayedCount + state.calls.size, 0, "nothing stays queued");
    assert.equal(state.tried.size, 0, "no record of a retry stays behind");
    for (const group of state.groups.values()) assert(group.done, `group ${group.header.seq} never ends`);
    for (const { stored, result } of rows.groups.all()) {
      const { seq, count } = stored.header;
      assert.notEqual(result?.endedAtMs ?? null, null, `the row of group ${seq} is still running`);
      assert.notEqual(result?.status, "running");
      for (let index = 0; index < count; index++) this.#checkRow(slotIdOf(seq, index));
    }
    assert.equal(followersIn(state).length, 0, "no follower is left");
    this.#run.turn({ do: "flush" });
    this.log.checkOver();
  }

  #money(): void {
    const { state, books } = this.#run;
    const { lent, charged } = books;
    const { ledger } = state;
    const open = zeroAmounts();
    for (const { assignment } of lent.values()) addAmounts(open, assignment.lease.amounts);
    assert.deepEqual(ledger.reserved, open, "reserved is the sum of the open leases");
    assert.equal(ledger.openCount, lent.size);
    const totals = sumTotals([...state.shards.values()].map((shard) => shard.totals));
    assert.deepEqual(ledger.spent, charged.spent, "spent is what the attempts cost");
    assert.deepEqual(totals.spent, charged.spent, "the shards' totals add up to what was spent");
    assert.equal(totals.attempts, charged.attempts);
    assert.equal(totals.overruns, charged.overruns, "overruns are counted");
    if (this.#lying) return;
    for (const dimension of DIMENSIONS) {
      const limit = ledger.limits[dimension] ?? Number.POSITIVE_INFINITY;
      assert(ledger.spent[dimension] + ledger.reserved[dimension] <= limit, `${dimension} is over its limit`);
    }
  }

  #width(): void {
    const { state, books } = this.#run;
    assert.deepEqual(
      [...state.attempts.keys()].sort(),
      [...books.lent.keys()].sort(),
      "the attempts in flight are those of the books",
    );
    assert(state.attempts.size <= state.width, "the run's width is kept");
    const gates = new Map<string, number>();
    const slots = new Set<number>();
    for (const { lease, shard } of state.attempts.values()) {
      assert(shard.leases.has(lease.attemptId), "an attempt is in its shard");
      const { gate, choices } = lease.target;
      assert.equal(choices, undefined, "an attempt goes to one target");
      gates.set(gate, (gates.get(gate) ?? 0) + 1);
      if (lease.slotId === null) continue;
      assert(!slots.has(lease.slotId), `slot ${lease.slotId} is in flight twice`);
      slots.add(lease.slotId);
      const group = state.groups.get(groupSeqOf(lease.slotId));
      assert.equal(group?.stateOf(indexOf(lease.slotId)), "running");
    }
    for (const name of GATES) {
      const known = state.upstreams.get(name);
      assert.equal(known?.inFlight ?? 0, gates.get(name) ?? 0);
      assert((known?.inFlight ?? 0) <= (known?.maxInFlight ?? 0), `${name} has more in flight than it takes`);
    }
  }

  #queue(): void {
    const { state, calls } = this.#run;
    const queued = queuedIn(state);
    const waiting = new Set<string>();
    for (const [groupSeq, slotId] of queued) {
      const name = `${groupSeq}:${slotId}`;
      assert(!waiting.has(name), `${name} is queued twice`);
      waiting.add(name);
      if (groupSeq === 0) assert(state.calls.has(slotId), `${name} is queued but not known`);
      else assert.equal(state.groups.get(groupSeq)?.stateOf(indexOf(slotId)), "queued");
    }
    const followers = followersIn(state);
    for (const { bucket, id, call } of followers) {
      const name = `${bucket.groupSeq}:${id}`;
      assert(!waiting.has(name), `${name} waits twice`);
      waiting.add(name);
      assert(isLed(state, { id, call }), `${name} follows a call that is not in flight`);
      if (call === null) assert.equal(state.groups.get(bucket.groupSeq)?.stateOf(indexOf(id)), "queued");
      else assert.equal(state.calls.get(id), call);
    }
    let expected = calls.size;
    for (const group of state.groups.values()) expected += group.counts.queued;
    assert.equal(waiting.size, expected, "everything that waits is queued, or follows an equal call");
    assert.equal(state.queue.readyCount + state.queue.delayedCount, queued.length);
    assert.deepEqual([...state.calls.values()].map(({ callId }) => callId).sort(), [...calls.keys()].sort());
  }

  #group(group: Group): void {
    const { header, counts, ended } = group;
    const recount = Object.fromEntries(SLOT_STATES.map((name) => [name, 0]));
    for (let index = 0; index < header.count; index++) {
      const slotState = group.stateOf(index);
      recount[slotState] = (recount[slotState] ?? 0) + 1;
      const slotId = slotIdOf(header.seq, index);
      const before = this.#ended.get(slotId);
      if (before !== undefined) assert.equal(slotState, before, `slot ${slotId} had ended as ${before}`);
      if (isFinalState(slotState)) this.#ended.set(slotId, slotState);
    }
    assert.deepEqual({ ...counts }, recount, "the group's counts add up");
    assert.equal(group.inFlight, counts.running);
    assert(group.inFlight <= header.concurrency, "the group's concurrency is kept");
    assert.equal(new Set(ended).size, ended.length, "a slot ends once");
    assert.equal(ended.length, header.count - counts.queued - counts.running);
    assert.equal(group.endedAtMs !== null, group.done);
    if (group.drained !== null) assert.equal(counts.queued, 0, "no slot of a stopped group is queued");
  }

  /** An ended slot has its state and cost in its row, unless its end follows from its group's row. */
  #checkRow(slotId: number): void {
    const { state, rows, books } = this.#run;
    const row = rows.slot(slotId);
    const drained = rows.result(groupSeqOf(slotId))?.drained ?? null;
    const slotState = row !== null && isFinalState(row.state) ? row.state : drained?.state;
    assert(slotState !== undefined, `no row has the end of slot ${slotId}`);
    assert.equal(this.#ended.get(slotId) ?? slotState, slotState, `rows and memory differ on slot ${slotId}`);
    assert.equal(row?.costNanoUsd ?? 0, books.slotCost.get(slotId) ?? 0, `slot ${slotId} has another cost in its row`);
    // One that shares its answer may end with an equal call's.
    const ownAnswer = state.deps.factsOf(slotId).dedupeKey === undefined;
    if (slotState === "completed" && ownAnswer && books.short.slots.has(slotId))
      assert.equal(row?.cappedBy, "budget", `slot ${slotId} ends with an answer that a learned cap cut`);
    if (slotState === "completed") assert.equal(row?.text, "ok");
    else if (row?.reason?.reason === "budget_exhausted") mustBeJust(row.reason);
    else assert.notEqual(row?.reason ?? drained?.reason ?? null, null, `no row has the reason of slot ${slotId}`);
  }
}

/**
 * A budget refusal names a dimension in which the minimum of the call exceeds all that is not spent, whatever is
 * reserved.
 */
export function mustBeJust(reason: Reason): void {
  assert(reason.reason === "budget_exhausted", `a single call was refused as ${reason.reason}`);
  const { dimension, limit, spent, needed } = reason;
  // In nano-USD the decimals of the wire are exact integers; counts are small enough for the factor.
  const nano = (amount: number): number => Math.round(amount * 1e9);
  assert(nano(needed) > nano(limit) - nano(spent), `${dimension}: ${limit} - ${spent} would have covered ${needed}`);
}
