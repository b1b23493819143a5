import { describe, expect, it } from "vitest";
import { cancelSlot } from "../../../../src/run/steps/cancel.ts";
import type { GroupHeader } from "../../../../src/run/group/group.ts";
import { leaseOf } from "../../../../src/run/steps/dispatch.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { CallFacts } from "../../../../src/call.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { P95 } from "../../../support/engine-hedges.ts";

const COUNT = 40;
const LATE = slotIdOf(1, COUNT - 1);
const FIRST = `${LATE}.1`;
const SECOND = `${LATE}.2`;
/** The reservation of one attempt, and what one answer costs. */
const RESERVED = 300;
const ANSWER = { promptTokens: 40, completionTokens: 60 };
const COST = 160;

type Options = ConstructorParameters<typeof TestEngine>[0] & {
  facts?: Partial<CallFacts>;
  header?: Partial<GroupHeader>;
};

/** A group of which all calls but one were answered after 300 ms: that one has been in flight since 0. */
function late({ facts = {}, header = {}, ...options }: Options = {}) {
  const engine = new TestEngine({ limits: { usd: 1_000_000 }, ...options });
  const { state } = engine;
  const group = engine.open(alike(COUNT, { hedge: { after: "p95", maxExtra: 0.1 }, ...facts }), header);
  for (let started = engine.startAll(0); started.length > 0; started = engine.startAll(300)) {
    for (const attemptId of [...state.attempts.keys()]) {
      if (attemptId !== FIRST) settle(state, attemptId, success(ANSWER, 300), 300);
    }
  }
  return { engine, state, group };
}

/** The same, with both attempts in flight since 1,000. */
function hedged(options: Options = {}) {
  const made = late(options);
  expect(made.engine.startAll(1_000)).toEqual([`1:${COUNT - 1}`]);
  expect([...made.state.attempts.keys()]).toEqual([FIRST, SECOND]);
  return made;
}

describe("a call with a hedge", () => {
  it("has two attempts, both reserved, and no third", () => {
    const { engine, state } = hedged();
    expect(state.ledger.reserved.usd).toBe(2 * RESERVED);
    expect(engine.startAll(5_000)).toEqual([]);
  });

  it("names the first attempt to the executor of the hedge, which stops it for the hedge's answer", () => {
    const { state } = hedged();
    const sent = [FIRST, SECOND].map((attemptId) => {
      const lease = state.attempts.get(attemptId)?.lease;
      return lease === undefined ? null : (leaseOf({ lease, timeoutMs: 1_000 }).hedgeOf ?? "none");
    });
    expect(sent).toEqual(["none", FIRST]);
  });

  it.each([
    ["the hedge", SECOND, FIRST],
    ["the first", FIRST, SECOND],
  ])("ends with the answer of %s, and the other is given up and stays charged", (_, winner, loser) => {
    const { state, group } = hedged();
    settle(state, winner, success(ANSWER, winner === FIRST ? 1_300 : 300), 1_300);
    expect(group.done).toBe(true);
    expect(state.attempts.size).toBe(0);
    expect([...state.givenUp.takeOfLanes().values()].flat()).toEqual([loser]);
    expect(state.ledger.spent.usd).toBe(COUNT * COST + RESERVED);
    expect(state.ledger.reserved.usd).toBe(0);
    expect(group.extra).toEqual({ calls: 1, costNanoUsd: RESERVED });
    expect(state.shards.get(0)?.totals.metered?.["acme"]?.sheet["acme/gpt-x"]?.hedges).toBe(1);
    const record = state.unwrittenSlot(LATE);
    expect(record).toMatchObject({ state: "completed", text: "ok", attempts: 2, costNanoUsd: COST + RESERVED });
    // The time of the call, not that of both attempts.
    expect(record?.latencyMs).toBe(1_300);
    // What the other reports afterwards changes nothing.
    expect(settle(state, loser, success(ANSWER, 9), 1_400)).toBeNull();
    expect(group.counts.completed).toBe(COUNT);
  });

  it("costs what was seen of the attempt that its executor has stopped for the answer of the other", () => {
    const { state, group } = hedged({ targets: [makeTarget({ abortCost: "seen" })] });
    const reason = { reason: "cancelled", message: "as its executor says it" } as const;
    const stopped = { kind: "failure", class: "unknown", answered: false, retryAfterMs: null } as const;
    settle(
      state,
      FIRST,
      { ...stopped, reason, latencyMs: 1_300, seen: { promptTokens: 10, completionTokens: 2 } },
      1_300,
    );
    settle(state, SECOND, success(ANSWER, 300), 1_300);
    // 10 prompt tokens, and of completion tokens no more than were reserved.
    expect(group.extra).toEqual({ calls: 1, costNanoUsd: 210 });
    expect([group.done, state.ledger.spent.usd, state.ledger.reserved.usd]).toEqual([true, COUNT * COST + 210, 0]);
    expect(state.unwrittenSlot(LATE)).toMatchObject({ state: "completed", text: "ok", costNanoUsd: COST + 210 });
  });

  it("has both attempts at one executor, if that has room", () => {
    const offers = [1, 0].map((lane): [number, number] => [lane, 5]);
    const beside = late();
    beside.engine.slotsStarted(new Map(offers), 1_000);
    const elsewhere = late();
    elsewhere.engine.slotsStarted(new Map(offers.slice(0, 1)), 1_000);
    const lanes = [beside, elsewhere].map(({ state }) =>
      [FIRST, SECOND].map((attemptId) => state.attempts.get(attemptId)?.shard.id),
    );
    expect(lanes).toEqual([
      [0, 0],
      [0, 1],
    ]);
  });

  it("continues with the other attempt if one fails, and is retried only once both have", () => {
    const { engine, state, group } = hedged();
    settle(state, SECOND, failure("transient"), 1_100);
    expect(group.stateOf(COUNT - 1)).toBe("running");
    expect(engine.startAll(1_100)).toEqual([]);
    settle(state, FIRST, failure("transient"), 1_200);
    expect(group.stateOf(COUNT - 1)).toBe("queued");
    expect(engine.startAll(60_000)).toEqual([`1:${COUNT - 1}`]);
    expect([...state.attempts.keys()]).toEqual([`${LATE}.3`]);
    settle(state, `${LATE}.3`, failure("transient"), 60_300);
    expect(group.stateOf(COUNT - 1)).toBe("failed");
  });

  it("is cancelled with both of its attempts", () => {
    const { state, group } = hedged();
    cancelSlot(state, group, COUNT - 1, { reason: "cancelled", message: "by the test" }, 1_100);
    expect(group.stateOf(COUNT - 1)).toBe("cancelled");
    expect([...state.givenUp.takeOfLanes().values()].flat()).toEqual([FIRST, SECOND]);
    expect(state.ledger.reserved.usd).toBe(0);
  });

  it("says in the log which of its attempts is the hedge", () => {
    const { state } = hedged();
    const starts = state.log.take()?.events.filter(({ event }) => event === "attempt_started") ?? [];
    expect(starts.filter((event) => "hedge" in event)).toEqual([
      expect.objectContaining({ index: COUNT - 1, attempt: 2, hedge: true }),
    ]);
  });
});

describe("a late call gets no hedge", () => {
  it("before it is twice as late as half of the others", () => {
    const { engine } = late();
    expect(engine.startAll(599)).toEqual([]);
    expect(engine.startAll(640)).toEqual([`1:${COUNT - 1}`]);
  });

  it.each<[string, Options]>([
    ["if it does not ask for one", { facts: { hedge: false } }],
    ["if a lost attempt of it is not to be made again", { header: { onLost: "fail" } }],
    ["if nobody waits for its group", { header: { background: true } }],
    ["if its hedges may cost less than it", { facts: { hedge: { ...P95, maxExtra: 0.01 } } }],
    ["if the budget has no room for its reservation", { limits: { usd: COUNT * COST + RESERVED - 1 } }],
  ])("%s", (_, options) => {
    const { engine } = late(options);
    expect(engine.startAll(5_000)).toEqual([]);
  });

  it("while its gate makes calls wait", () => {
    const { engine, state } = late();
    state.upstreams.get("acme")?.cool(2_000, "requests_per_minute");
    expect(engine.startAll(1_999)).toEqual([]);
    expect(engine.startAll(2_000)).toEqual([`1:${COUNT - 1}`]);
  });

  it("while its run is paused, or has no permit left", () => {
    const { engine, state } = late();
    state.setPaused(true);
    expect(engine.startAll(1_000)).toEqual([]);
    state.setPaused(false);
    state.setWidth(1);
    expect(engine.startAll(1_000)).toEqual([]);
    state.setWidth(2);
    expect(engine.startAll(1_000)).toHaveLength(1);
  });

  it("until an executor has room for it", () => {
    const { engine } = late();
    expect(engine.turn([], 1_000).assignments).toEqual([]);
    expect(engine.turn([1], 1_000).assignments).toHaveLength(1);
  });
});
