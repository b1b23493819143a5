/** Rebuilding the engine from stored rows. Random histories with compared snapshots are in property.test.ts. */
import { describe, expect, it } from "vitest";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import { endDrainedSlots } from "../../../../src/run/steps/end-slot.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import { freshRecord, type SlotRecord } from "../../../../src/run/group/record.ts";
import { requeueTried, restoreLease, restoreShard, restoreSlot } from "../../../../src/run/steps/restore.ts";
import { expireLeases, settle } from "../../../../src/run/steps/settle.ts";
import { shardText, type StoredLease, type StoredShard } from "../../../../src/run/leases/shard.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { RunLog } from "../../../../src/run/log.ts";
import { EngineState } from "../../../../src/run/state.ts";
import { addModel, sumTotals, zeroTotals } from "../../../../src/run/measures/totals.ts";
import type { Reason } from "../../../../src/errors.ts";
import { FOUND_LEASE_TTL_MS, LEASE_TTL_MS, MODELS_COUNTED_MAX } from "../../../../src/limits.ts";
import { alike, failure, makeFacts, makeHeader, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const ONCE = { calls: 1, promptTokens: 2, completionTokens: 3, costNanoUsd: 4 };
const AMOUNTS = { usd: 300, calls: 1, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 };
const slot = (index: number): number => slotIdOf(1, index);
const record = (index: number, fields: Partial<SlotRecord>): SlotRecord => ({ ...freshRecord(slot(index)), ...fields });
const leased = (index: number, attempt: number): StoredLease => ({
  id: `${slot(index)}.${attempt}`,
  slot: slot(index),
  attempt,
  upstream: "acme",
  model: "gpt-x",
  amounts: AMOUNTS,
  startedAtMs: 500,
  queuedMs: 7,
  startSeq: 0,
});

/** An engine after a restart at `nowMs`, from the rows of one group and one lane. */
function restarted(
  rows: { count: number; slots?: SlotRecord[]; leases?: StoredLease[]; target?: ReturnType<typeof makeTarget> },
  nowMs: number,
) {
  const engine = new TestEngine({ limits: { usd: 10_000 } });
  const { state } = engine;
  const group = state.openGroup(makeHeader({ count: rows.count }));
  for (const each of rows.slots ?? []) restoreSlot(state, group, each, nowMs);
  const shard = restoreShard(state, 0, { totals: zeroTotals(), leases: [] });
  for (const each of rows.leases ?? []) restoreLease(state, shard, each, rows.target ?? makeTarget(), nowMs);
  enqueueSlots(
    state,
    group,
    0,
    Array.from({ length: rows.count }, () => makeFacts()),
  );
  requeueTried(state, nowMs);
  return { engine, state, group };
}

describe("restored slots", () => {
  it("start if they have no row, and only those", () => {
    const slots = [record(0, { state: "completed", attempts: 1 }), record(1, { state: "failed", attempts: 3 })];
    const { engine, group } = restarted({ count: 4, slots, leases: [leased(2, 1)] }, 1_000);
    expect(group.counts).toMatchObject({ completed: 1, failed: 1, running: 1, queued: 1 });
    expect(engine.startAll(1_000)).toEqual(["1:3"]);
  });

  it("wait for their retry until the same time as before", () => {
    const slots = [record(0, { attempts: 1, notBeforeMs: 5_000 })];
    const { engine } = restarted({ count: 1, slots }, 1_000);
    expect(engine.startAll(4_999)).toEqual([]);
    expect(engine.turn([1], 5_000).assignments).toMatchObject([{ lease: { attempt: 2 } }]);
  });

  it("are not queued while they have a lease, and keep the cost of earlier attempts", () => {
    const slots = [record(0, { attempts: 1, notBeforeMs: 900, costNanoUsd: 40, latencyMs: 20 })];
    const { engine, state, group } = restarted({ count: 1, slots, leases: [leased(0, 2)] }, 1_000);
    expect(engine.startAll(9_000)).toEqual([]);
    settle(state, `${slot(0)}.2`, success({ promptTokens: 10 }, 30), 9_000);
    expect(state.takeWrites().slots).toMatchObject([
      { attempts: 2, costNanoUsd: 50, latencyMs: 50, state: "completed" },
    ]);
    expect([group.status, group.sequentialMs]).toEqual(["completed", 50]);
  });
});

describe("restored leases", () => {
  it("keep their reservation and their permit, and can still settle", () => {
    const { state } = restarted({ count: 1, leases: [leased(0, 1)] }, 1_000);
    expect(state.ledger.reserved).toEqual(AMOUNTS);
    expect(state.upstreams.get("acme")?.inFlight).toBe(1);
    expect(settle(state, `${slot(0)}.1`, success({ promptTokens: 10 }), 1_100)).toMatchObject({ queuedMs: 7 });
    expect([state.ledger.reserved.usd, state.ledger.spent.usd, state.attempts.size]).toEqual([0, 10, 0]);
  });

  it("get a new term, after which they expire", () => {
    const { state, group } = restarted({ count: 1, leases: [leased(0, 1)] }, 100_000);
    expect(expireLeases(state, 100_000 + FOUND_LEASE_TTL_MS - 1)).toBe(0);
    expect(expireLeases(state, 100_000 + FOUND_LEASE_TTL_MS)).toBe(1);
    expect(state.ledger.spent).toEqual(AMOUNTS);
    expect(group.stateOf(0)).toBe("queued");
  });

  it("of single calls end at the latest end of their attempt, however often the object restarts before the term is over", () => {
    const target = makeTarget({ timeoutMs: 60_000 });
    const call = { ...leased(0, 1), id: "call.1", slot: null };
    const latestEndMs = call.startedAtMs + target.timeoutMs + LEASE_TTL_MS;
    const early = restarted({ count: 1, leases: [call], target }, 1_000).state;
    expect(early.nextLeaseEndMs()).toBe(1_000 + FOUND_LEASE_TTL_MS);
    const late = restarted({ count: 1, leases: [call], target }, latestEndMs - 1_000).state;
    expect([expireLeases(late, latestEndMs - 1), expireLeases(late, latestEndMs)]).toEqual([0, 1]);
    expect(late.ledger.spent).toEqual(AMOUNTS);
    const tooLate = restarted({ count: 1, leases: [call], target }, latestEndMs + 5_000).state;
    expect(expireLeases(tooLate, latestEndMs + 5_000)).toBe(1);
  });

  it("of slots get the whole term each time: a slot may have waited in its executor behind others", () => {
    const { state } = restarted({ count: 1, leases: [leased(0, 1)] }, 10_000_000);
    expect(state.nextLeaseEndMs()).toBe(10_000_000 + FOUND_LEASE_TTL_MS);
  });

  it("are charged at their reservation if their price is no longer configured", () => {
    const target = makeTarget({ price: null, maxInFlight: 0, attemptsMax: 0 });
    const { state } = restarted({ count: 1, leases: [leased(0, 1)], target }, 1_000);
    const settled = settle(state, `${slot(0)}.1`, success({ promptTokens: 10, completionTokens: 5 }), 1_100);
    expect(settled).toMatchObject({
      charge: { usd: AMOUNTS.usd, calls: 1, prompt_tokens: 10, completion_tokens: 5, new_tokens: 15 },
      estimated: true,
    });
  });

  it("are charged the cost that the upstream names, with or without a price", () => {
    const target = makeTarget({ price: null });
    const { state } = restarted({ count: 1, leases: [leased(0, 1)], target }, 1_000);
    const settled = settle(state, `${slot(0)}.1`, success({ costNanoUsd: 5 }), 1_100);
    expect(settled).toMatchObject({ charge: { usd: 5 }, estimated: false });
  });

  it("do not block their upstream for other models if their own is no longer configured", () => {
    const target = makeTarget({ price: null, maxInFlight: 0, attemptsMax: 0 });
    const { engine } = restarted({ count: 2, leases: [leased(0, 1)], target }, 1_000);
    expect(engine.startAll(1_000)).toEqual(["1:1"]);
  });
});

describe("the start of an attempt", () => {
  /** An engine whose stored log ends with event 7, with one lease whose start was event `startSeq`. */
  function restartedAt(startSeq: number, stored: Partial<StoredLease> = {}) {
    const deps = new TestEngine().state.deps;
    const state = new EngineState({ ledger: new Ledger(NO_LIMITS), width: 8, windowMs: 50, log: new RunLog(7) }, deps);
    const group = state.openGroup(makeHeader({ count: 1 }));
    const shard = restoreShard(state, 0, { totals: zeroTotals(), leases: [] });
    restoreLease(state, shard, { ...leased(0, 1), startSeq, ...stored }, makeTarget(), 9_000);
    return { state, group, events: state.log.take()?.events ?? [] };
  }

  it("is emitted again if it was not written, with its own time and a new number", () => {
    const { state, group, events } = restartedAt(8);
    expect(events).toEqual([
      {
        atMs: 500,
        group: group.header.id,
        event: "attempt_started",
        index: 0,
        callId: null,
        attempt: 1,
        upstream: "acme",
        model: "gpt-x",
        reserved: AMOUNTS,
        queuedMs: 7,
      },
    ]);
    expect([state.log.lastSeq, state.attempts.get(leased(0, 1).id)?.lease.startSeq]).toEqual([8, 8]);
  });

  it("is not emitted again if it is in the log, whose numbers continue", () => {
    const { state, events } = restartedAt(7);
    expect(events).toEqual([]);
    expect(state.log.add({ event: "run_closed", status: "closed" }, null, 0)).toBe(8);
  });

  it("has the id of its call if that is a single call", () => {
    const { events } = restartedAt(8, { id: "a.b.3", slot: null, attempt: 3 });
    expect(events).toMatchObject([{ group: null, index: null, callId: "a.b", attempt: 3 }]);
  });
});

describe("a rule for lost attempts", () => {
  it("is restored with the lease of a single call, and with the group of a slot", () => {
    const engine = new TestEngine();
    engine.call("fails", 0, { onLost: "fail" });
    engine.call("retries", 0);
    engine.startAll(0);
    const [shard] = engine.state.takeWrites().shards;
    if (shard === undefined) throw new Error("no shard was written");
    const stored: StoredShard = JSON.parse(shardText(shard));
    const { state } = new TestEngine();
    const restored = restoreShard(state, shard.id, stored);
    for (const lease of stored.leases) restoreLease(state, restored, lease, makeTarget(), 50);
    state.openGroup(makeHeader({ onLost: "fail" }));
    restoreLease(state, restored, leased(0, 1), makeTarget(), 50);
    const retryOf = (attemptId: string) => settle(state, attemptId, failure("unknown"), 60)?.retryInMs;
    expect([retryOf("fails.1"), retryOf("retries.1"), retryOf(`${slot(0)}.1`)]).toEqual([null, 0, null]);
  });
});

describe("a restored group that was stopped", () => {
  it("ends its queued slots, and ends itself if none is running", () => {
    const { state } = new TestEngine();
    const group = state.openGroup(makeHeader({ count: 3 }));
    group.drain({ state: "cancelled", reason: STOPPED, cause: "cancel" });
    restoreSlot(state, group, record(0, { state: "completed", attempts: 1 }), 50);
    restoreSlot(state, group, record(1, { attempts: 1, notBeforeMs: 60 }), 50);
    endDrainedSlots(state, group, 50);
    expect([group.status, group.counts.cancelled, group.endedAtMs, state.tried.size]).toEqual(["cancelled", 2, 50, 0]);
    expect(state.takeWrites().groups).toEqual([group]);
  });

  it("waits for its running slots", () => {
    const { state } = new TestEngine();
    const group = state.openGroup(makeHeader({ count: 2 }));
    group.drain({ state: "cancelled", reason: STOPPED, cause: "cancel" });
    restoreLease(state, restoreShard(state, 0, { totals: zeroTotals(), leases: [] }), leased(0, 1), makeTarget(), 50);
    endDrainedSlots(state, group, 50);
    expect([group.done, state.takeWrites().groups]).toEqual([false, []]);
    settle(state, `${slot(0)}.1`, success(), 60);
    expect([group.status, state.takeWrites().groups]).toEqual(["cancelled", [group]]);
  });

  it("keeps its queued slots if it was not stopped", () => {
    const { state } = new TestEngine();
    const group = state.openGroup(makeHeader({ count: 1 }));
    endDrainedSlots(state, group, 50);
    expect(group.counts.queued).toBe(1);
  });
});

describe("a shard's row", () => {
  it("restores totals and leases from JSON as they were", () => {
    const engine = new TestEngine();
    engine.open(alike(3));
    engine.turn([3], 0);
    settle(engine.state, `${slot(0)}.1`, success({ promptTokens: 10 }, 25), 40);
    const [shard] = engine.state.takeWrites().shards;
    if (shard === undefined) throw new Error("no shard was written");
    const stored: StoredShard = JSON.parse(shardText(shard));
    const again = new TestEngine().state;
    const restored = restoreShard(again, 0, stored);
    expect(restored.totals).toEqual(shard.totals);
    expect(again.ledger.spent).toEqual(engine.state.ledger.spent);
    expect(stored.leases.map(({ id, slot: slotId, upstream, model }) => [id, slotId, upstream, model])).toEqual([
      [`${slot(1)}.1`, slot(1), "acme", "gpt-x"],
      [`${slot(2)}.1`, slot(2), "acme", "gpt-x"],
    ]);
  });

  it("has zero for a counter that did not exist when it was written", () => {
    const older: StoredShard = JSON.parse(JSON.stringify({ totals: { spent: AMOUNTS, attempts: 4 }, leases: [] }));
    expect(restoreShard(new TestEngine().state, 0, older).totals).toMatchObject({
      attempts: 4,
      overruns: 0,
      busyMs: 0,
    });
  });
});

describe("totals", () => {
  it("add up, except the peak, which is the highest", () => {
    const one = { ...zeroTotals(), attempts: 2, busyMs: 10, peakParallel: 3, spent: AMOUNTS };
    const other = { ...zeroTotals(), attempts: 5, retries: 1, peakParallel: 2, spent: AMOUNTS };
    expect(sumTotals([one, other])).toMatchObject({
      attempts: 7,
      retries: 1,
      busyMs: 10,
      peakParallel: 3,
      spent: { usd: 600, calls: 2, prompt_tokens: 200, completion_tokens: 200, new_tokens: 400 },
    });
  });

  it("count models apart up to a bound, and the others together", () => {
    const models = {};
    const names = Array.from({ length: MODELS_COUNTED_MAX }, (_, each) => `acme/${each}`);
    for (const name of [...names, "acme/late", "acme/later", "acme/0"]) addModel(models, name, ONCE);
    expect(Object.keys(models)).toEqual([...names, "other/models"]);
    expect(models).toMatchObject({ "acme/0": { calls: 2 }, "other/models": { calls: 2, costNanoUsd: 8 } });
  });
});

describe("a stored lease of a single call", () => {
  it("has the group that a later call has made of its window, although it was stored before", () => {
    const engine = new TestEngine();
    const { state } = engine;
    const shard = state.directShard();
    const window = state.window.join(1_000).group;
    restoreLease(state, shard, { ...leased(0, 1), id: "call.1", slot: null }, makeTarget(), 1_000);
    for (const lease of shard.leases.values()) lease.window = window;
    const stored = (): unknown => JSON.parse(shardText(shard));
    expect(stored()).not.toHaveProperty("leases.0.window");
    const { group } = state.window.join(1_010);
    expect(group.id).not.toBeNull();
    expect(stored()).toHaveProperty("leases.0.window", group.id);
    expect(stored()).toHaveProperty("leases.0.window", group.id);
  });
});

describe("a restored lease of a single call", () => {
  /** The events of the end of a call that was started with these facts before a restart. */
  function endOf(facts: Parameters<TestEngine["call"]>[2]) {
    const before = new TestEngine();
    before.call("c", 0, facts);
    expect(before.startAll(0)).toEqual(["c"]);
    const shards = [...before.state.shards.values()].map((shard) => shardText(shard));
    const rows = shards.map((text): StoredShard => JSON.parse(text));
    const { state } = new TestEngine();
    for (const { leases } of rows) {
      const shard = restoreShard(state, 1_000, { totals: zeroTotals(), leases: [] });
      for (const lease of leases) restoreLease(state, shard, lease, makeTarget(), 10);
    }
    settle(state, "c.1", success({}, 5), 20);
    return state.log.take()?.events ?? [];
  }

  it("ends at its step", () => {
    const ended = { callId: "c", step: 3, steps: 20 };
    const events = endOf({ step: 3, steps: 20 }).filter(({ event }) => event !== "attempt_started");
    expect(events).toMatchObject([
      { event: "attempt_ended", ...ended },
      { event: "slot_completed", ...ended },
    ]);
  });

  it("ends in its client's trace, whose state only the call's own event has", () => {
    const trace = { parent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, state: "vendor=1" };
    const events = endOf({ trace });
    const traces = events.flatMap((event) => ("trace" in event ? [[event.event, event.trace]] : []));
    expect(traces).toEqual([
      ["attempt_ended", { parent: trace.parent }],
      ["slot_completed", trace],
    ]);
  });
});
