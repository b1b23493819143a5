import { describe, expect, it } from "vitest";
import { nextReadyMs } from "../../../../src/run/steps/next-ready.ts";
import { zeroAmounts } from "../../../../src/run/money/ledger.ts";
import type { Outcome } from "../../../../src/call.ts";
import { drainGroup } from "../../../../src/run/steps/end-slot.ts";
import {
  doubtLease,
  expireLeases,
  heartbeat,
  holdLease,
  loseAttempts,
  settle,
} from "../../../../src/run/steps/settle.ts";
import { LOST } from "../../../../src/run/gates/retry.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import {
  BATCH_ATTEMPTS_MAX,
  BATCH_FAILED_ATTEMPTS_MAX,
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  RETRY_AFTER_MAX_MS,
  SEEN_MARGIN_TOKENS,
} from "../../../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

/** The reservation of one attempt of `started()`. */
const RESERVED = { usd: 300, calls: 1, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 };
/** The charge of an attempt that was answered, but not billed. */
const CALL = { ...zeroAmounts(), calls: 1 };
const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const FIRST = slotIdOf(1, 0);

/** A group with the first attempt of every slot in flight since 1,000. */
function started(count = 1, options: ConstructorParameters<typeof TestEngine>[0] = {}) {
  const engine = new TestEngine({ limits: { usd: 1_000_000 }, ...options });
  const group = engine.open(alike(count), { openedAtMs: 900 });
  engine.startAll(1_000);
  engine.state.takeWrites();
  return { engine, group, state: engine.state };
}

describe("the charge of an attempt", () => {
  it.each<[string, Outcome, object, boolean]>([
    ["exactly what was reported", success({ promptTokens: 40, completionTokens: 7 }), { usd: 54, calls: 1 }, false],
    ["the cost that the upstream names", success({ promptTokens: 40, costNanoUsd: 5 }), { usd: 5, calls: 1 }, false],
    ["its reservation if no usage was reported", success(null), RESERVED, true],
    ["its reservation if the cost is unknown", failure("unknown"), RESERVED, true],
    ["a call and nothing else if it was rejected", failure("rejected"), CALL, false],
    ["a call and nothing else if the upstream was down", failure("transient"), CALL, false],
    ["a call and nothing else if it was rate-limited", failure("rate_limited"), CALL, false],
    ["nothing if no connection was made", failure("transient", null, 10, false), zeroAmounts(), false],
    ["nothing if it was not sent", failure("rejected", null, 10, false), zeroAmounts(), false],
    ["its reservation if the connection was lost", failure("unknown", null, 10, false), RESERVED, true],
  ])("is %s", (_, outcome, charge, estimated) => {
    const { state } = started();
    const settled = settle(state, `${FIRST}.1`, outcome, 1_500);
    expect(settled).toMatchObject({ charge, estimated, queuedMs: 100 });
    expect(state.ledger.reserved).toEqual(zeroAmounts());
    expect(state.ledger.spent).toMatchObject(charge);
    expect(state.shards.get(0)?.totals.spent).toEqual(state.ledger.spent);
    expect(state.shards.get(0)?.totals.estimated).toBe(estimated ? 1 : 0);
  });

  describe("if its stream was stopped after some tokens were seen", () => {
    const seenAs = (promptTokens: number | null, completionTokens: number): Outcome => {
      const stopped = failure("unknown");
      if (stopped.kind === "success") throw new Error("it failed");
      return { ...stopped, seen: { promptTokens, completionTokens } };
    };
    /** The cap is far above the margin. */
    const wide = () => {
      const engine = new TestEngine({ limits: { usd: 1_000_000 } });
      engine.open(alike(1, { maxTokens: 10_000 }), { openedAtMs: 900 });
      engine.startAll(1_000);
      return engine;
    };

    it("is the prompt's bound, the tokens seen and the margin of those under way, marked as estimated", () => {
      const { state } = wide();
      const settled = settle(state, `${FIRST}.1`, seenAs(null, 40), 1_500);
      const completion = 40 + SEEN_MARGIN_TOKENS;
      expect(settled).toMatchObject({
        charge: {
          usd: 100 + 2 * completion,
          calls: 1,
          prompt_tokens: 100,
          completion_tokens: completion,
          new_tokens: 100 + completion,
        },
        estimated: true,
      });
    });

    it("has the prompt tokens that the upstream reported, if they are fewer", () => {
      const { state } = wide();
      const settled = settle(state, `${FIRST}.1`, seenAs(30, 0), 1_500);
      expect(settled).toMatchObject({ charge: { prompt_tokens: 30, completion_tokens: SEEN_MARGIN_TOKENS } });
    });

    it("is at most the reservation, however many tokens are reported as seen", () => {
      for (const seen of [seenAs(null, 0), seenAs(1_000, 1e9), seenAs(100, 100)]) {
        const { state } = started();
        expect(settle(state, `${FIRST}.1`, seen, 1_500)).toMatchObject({ charge: RESERVED, estimated: true });
      }
    });
  });

  it("is counted as an overrun if it exceeds the reservation, and stops the next attempt", () => {
    const { engine, state } = started(1, { limits: { usd: 300 } });
    settle(state, `${FIRST}.1`, success({ promptTokens: 100, completionTokens: 101 }), 1_500);
    expect(state.shards.get(0)?.totals.overruns).toBe(1);
    expect(state.ledger.spent.usd).toBe(302);
    engine.call("next", 1_500);
    expect(engine.turn([], 1_500).refused).toMatchObject([{ reason: { reason: "budget_exhausted" } }]);
  });

  it("is no overrun at exactly the reservation", () => {
    const { state } = started(1, { limits: { usd: 300 } });
    settle(state, `${FIRST}.1`, success({ promptTokens: 100, completionTokens: 100 }), 1_500);
    expect(state.shards.get(0)?.totals.overruns).toBe(0);
  });
});

describe("a slot whose attempt succeeded", () => {
  it("is completed, with everything in its row", () => {
    const { state, group } = started(2);
    const settled = settle(state, `${FIRST}.1`, success({ promptTokens: 40, completionTokens: 7 }, 250), 1_250);
    expect(settled?.retryInMs).toBeNull();
    expect(group.stateOf(0)).toBe("completed");
    const { shards, slots, groups } = state.takeWrites();
    expect(slots).toEqual([
      {
        id: FIRST,
        state: "completed",
        attempts: 1,
        notBeforeMs: null,
        latencyMs: 250,
        queuedMs: 100,
        promptTokens: 40,
        completionTokens: 7,
        costNanoUsd: 54,
        estimated: false,
        model: "gpt-x-2026",
        finishReason: "stop",
        text: "ok",
        reason: null,
      },
    ]);
    expect([shards.length, groups.length]).toEqual([1, 0]);
  });

  it("ends its group if it was the last", () => {
    const { state, group } = started(2);
    settle(state, `${FIRST}.1`, success(), 1_250);
    settle(state, `${FIRST + 1}.1`, success(), 1_400);
    expect([group.status, group.endedAtMs]).toEqual(["completed", 1_400]);
    expect(state.takeWrites().groups).toEqual([group]);
  });
});

describe("a slot whose attempt failed", () => {
  it("is queued again, to start no sooner than its delay", () => {
    const { engine, state, group } = started(1, { random: () => 0.5 });
    expect(settle(state, `${FIRST}.1`, failure("transient"), 2_000)?.retryInMs).toBe(400);
    expect([group.stateOf(0), nextReadyMs(state, 2_000)]).toEqual(["queued", 2_400]);
    expect(state.takeWrites().slots).toMatchObject([{ state: "queued", attempts: 1, notBeforeMs: 2_400 }]);
    expect(engine.startAll(2_399)).toEqual([]);
    expect(engine.turn([1], 2_400).assignments).toMatchObject([{ lease: { attemptId: `${FIRST}.2`, attempt: 2 } }]);
  });

  it("has the cost of all its attempts, and the waiting time of the first", () => {
    const { engine, state } = started();
    settle(state, `${FIRST}.1`, failure("unknown", null, 30), 2_000);
    engine.startAll(2_000);
    settle(state, `${FIRST}.2`, success({ promptTokens: 40, completionTokens: 7 }, 20), 2_020);
    expect(state.takeWrites().slots).toMatchObject([
      {
        state: "completed",
        attempts: 2,
        latencyMs: 50,
        queuedMs: 100,
        costNanoUsd: 354,
        estimated: true,
        reason: null,
      },
    ]);
    expect(state.shards.get(0)?.totals).toMatchObject({
      attempts: 2,
      retries: 1,
      completed: 1,
      failed: 0,
      sequentialMs: 50,
    });
  });

  it("fails when its attempts are used up, with its last reason", () => {
    const { engine, state, group } = started(1, { targets: [makeTarget({ attemptsMax: 2 })] });
    settle(state, `${FIRST}.1`, failure("transient"), 2_000);
    engine.startAll(2_000);
    expect(settle(state, `${FIRST}.2`, failure("transient"), 3_000)?.retryInMs).toBeNull();
    expect([group.status, group.endedAtMs]).toEqual(["failed", 3_000]);
    expect(state.takeWrites().slots).toMatchObject([{ state: "failed", reason: { reason: "upstream_error" } }]);
    expect(state.shards.get(0)?.totals).toMatchObject({ failed: 1, completed: 0 });
  });

  it("fails at once when it was rejected, and affects no other slot", () => {
    const { state, group } = started(3);
    settle(state, `${FIRST + 1}.1`, failure("rejected"), 2_000);
    expect(group.counts).toMatchObject({ failed: 1, running: 2 });
  });
});

describe("an attempt whose cost is unknown", () => {
  const ended = (retryable: boolean): Outcome => {
    const reason = { reason: "upstream_error", upstream: "acme", status: 400, message: "no", retryable } as const;
    return { kind: "failure", class: "unknown", reason, answered: true, retryAfterMs: null, latencyMs: 10 };
  };

  it("is retried if its reason is retryable and on_lost allows it", () => {
    const { state } = started();
    expect(settle(state, `${FIRST}.1`, ended(true), 1_500)?.retryInMs).not.toBeNull();
  });

  it("is final if its reason is, and stays charged", () => {
    const { state, group } = started();
    const settled = settle(state, `${FIRST}.1`, ended(false), 1_500);
    expect(settled).toMatchObject({ retryInMs: null, charge: RESERVED, estimated: true });
    expect(group.status).toBe("failed");
  });
});

describe("a limit of calls", () => {
  it("counts attempts that the upstream answered, free or not", () => {
    const { engine, state } = started(1, { limits: { calls: 2 } });
    settle(state, `${FIRST}.1`, failure("transient"), 1_500);
    engine.startAll(60_000);
    settle(state, `${FIRST}.2`, failure("transient"), 60_000);
    expect([state.ledger.spent.calls, state.ledger.spent.usd]).toEqual([2, 0]);
    engine.call("next", 120_000);
    const { refused } = engine.turn([1], 120_000);
    expect(refused).toMatchObject([{ reason: { reason: "budget_exhausted", dimension: "calls" } }]);
  });

  it("does not count attempts that reached no upstream", () => {
    const { state } = started(1, { limits: { calls: 2 } });
    settle(state, `${FIRST}.1`, failure("transient", null, 10, false), 1_500);
    expect(state.ledger.spent.calls).toBe(0);
  });
});

describe("an upstream's Retry-After", () => {
  it("delays every call of the run to that upstream, by the longest one", () => {
    const { engine, state } = started(2);
    settle(state, `${FIRST}.1`, failure("rate_limited", 5_000), 2_000);
    settle(state, `${FIRST + 1}.1`, failure("rate_limited", 1_000), 2_100);
    engine.call("c", 2_100);
    expect(engine.startAll(6_999)).toEqual([]);
    expect(engine.startAll(7_000)).toContain("c");
  });

  it("delays nothing if it is missing, or the failure is not a rate limit", () => {
    const { engine, state } = started(2);
    settle(state, `${FIRST}.1`, failure("rate_limited"), 2_000);
    settle(state, `${FIRST + 1}.1`, failure("transient", 5_000), 2_000);
    engine.call("c", 2_000);
    expect(engine.startAll(2_000)).toContain("c");
  });

  it("is obeyed up to its bound; a longer one fails its call and does not delay the others", () => {
    const obeyed = started(1);
    settle(obeyed.state, `${FIRST}.1`, failure("rate_limited", RETRY_AFTER_MAX_MS), 0);
    obeyed.engine.call("c", 0);
    expect(obeyed.engine.startAll(RETRY_AFTER_MAX_MS - 1)).toEqual([]);
    expect(obeyed.engine.startAll(RETRY_AFTER_MAX_MS)).toContain("c");

    const refused = started(1);
    settle(refused.state, `${FIRST}.1`, failure("rate_limited", RETRY_AFTER_MAX_MS + 1), 0);
    refused.engine.call("c", 0);
    expect(refused.group.status).toBe("failed");
    expect(refused.engine.startAll(0)).toEqual(["c"]);
  });
});

describe("a group that aborts on errors", () => {
  it("starts nothing more, lets running slots end, and retries nothing", () => {
    const engine = new TestEngine({ width: 2 });
    const group = engine.open(alike(5), { rules: { onError: "abort" } });
    engine.startAll(0);
    settle(engine.state, `${FIRST}.1`, failure("rejected"), 10);
    expect(group.counts).toEqual({ queued: 0, running: 1, completed: 0, failed: 1, skipped: 0, cancelled: 3 });
    expect(engine.startAll(10)).toEqual([]);
    expect(settle(engine.state, `${FIRST + 1}.1`, failure("transient"), 20)?.retryInMs).toBeNull();
    expect([group.status, group.counts.failed, group.endedAtMs]).toEqual(["failed", 2, 20]);
  });

  it("still records the answers of its running slots", () => {
    const engine = new TestEngine({ width: 2 });
    const group = engine.open(alike(3), { rules: { onError: "abort" } });
    engine.startAll(0);
    settle(engine.state, `${FIRST}.1`, failure("rejected"), 10);
    settle(engine.state, `${FIRST + 1}.1`, success(), 20);
    expect(group.status).toBe("partial");
  });
});

describe("a group that is stopped", () => {
  it("ends queued slots without a row each, and waits for running ones", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(4));
    engine.startAll(0);
    drainGroup(engine.state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 10);
    const { slots, groups } = engine.state.takeWrites();
    expect([slots, groups]).toEqual([[], [group]]);
    expect([group.counts.cancelled, group.done]).toEqual([3, false]);
    settle(engine.state, `${FIRST}.1`, success(), 20);
    expect([group.status, group.endedAtMs]).toEqual(["cancelled", 20]);
  });

  it("writes the end of a slot whose row is queued, with its cost", () => {
    const { state, group } = started();
    settle(state, `${FIRST}.1`, failure("unknown"), 2_000);
    drainGroup(state, group, { state: "failed", reason: STOPPED, cause: "cancel" }, 2_100);
    expect(state.takeWrites().slots).toMatchObject([
      { state: "failed", attempts: 1, costNanoUsd: 300, reason: STOPPED },
    ]);
    expect([state.tried.size, state.queue.delayedCount]).toEqual([0, 0]);
  });

  it("stops once: a second stop changes nothing", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(2));
    drainGroup(engine.state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 10);
    drainGroup(engine.state, group, { state: "failed", reason: LOST, cause: "deadline" }, 20);
    expect([group.drained, group.endedAtMs]).toEqual([{ state: "cancelled", reason: STOPPED, cause: "cancel" }, 10]);
  });
});

describe("an attempt that is not in flight", () => {
  it("does not settle twice, and changes nothing", () => {
    const { state, group } = started(2);
    settle(state, `${FIRST}.1`, success({ promptTokens: 10 }), 2_000);
    state.takeWrites();
    expect(settle(state, `${FIRST}.1`, success({ promptTokens: 10 }), 2_001)).toBeNull();
    expect(state.ledger.spent.usd).toBe(10);
    expect(group.counts.completed).toBe(1);
    expect(state.takeWrites()).toEqual({ shards: [], apart: [], slots: [], groups: [], credits: null });
  });

  it("is too late when its lease has expired: the retry counts", () => {
    const { engine, state, group } = started();
    expireLeases(state, 1_000 + LEASE_TTL_MS);
    expect(settle(state, `${FIRST}.1`, success(), 40_000)).toBeNull();
    engine.startAll(40_000);
    settle(state, `${FIRST}.2`, success(), 41_000);
    expect([group.status, group.attempts[0]]).toEqual(["completed", 2]);
  });

  it("does not settle if it never existed", () => {
    expect(settle(started().state, "nonsense", success(), 0)).toBeNull();
  });
});

describe("a lease", () => {
  it("expires exactly at its time, charged at its reservation, and its slot is retried", () => {
    const { engine, state, group } = started(1);
    expect(state.nextLeaseEndMs()).toBe(1_000 + LEASE_TTL_MS);
    expect(expireLeases(state, 1_000 + LEASE_TTL_MS - 1)).toBe(0);
    expect(expireLeases(state, 1_000 + LEASE_TTL_MS)).toBe(1);
    expect(state.ledger.spent).toEqual(RESERVED);
    expect(state.takeWrites().slots).toMatchObject([{ estimated: true, latencyMs: LEASE_TTL_MS, reason: LOST }]);
    expect([group.stateOf(0), state.nextLeaseEndMs()]).toEqual(["queued", null]);
    expect(engine.startAll(40_000)).toEqual(["1:0"]);
  });

  it("is extended by a heartbeat, which returns the attempts that are not in flight", () => {
    const { state } = started(2);
    expect(heartbeat(state, [`${FIRST}.1`, "foreign"], 20_000)).toEqual(["foreign"]);
    expect(expireLeases(state, 1_000 + LEASE_TTL_MS)).toBe(1);
    expect([...state.attempts.keys()]).toEqual([`${FIRST}.1`]);
    expect(state.nextLeaseEndMs()).toBe(20_000 + LEASE_TTL_MS);
    expect(heartbeat(state, [`${FIRST + 1}.1`], 40_000)).toEqual([`${FIRST + 1}.1`]);
  });

  it("is held to the latest end of its attempt by an executor with a socket, whatever comes by heartbeat", () => {
    const { state } = started();
    const { timeoutMs } = state.attempts.get(`${FIRST}.1`)?.lease.target ?? { timeoutMs: 0 };
    const endMs = 1_000 + timeoutMs + LEASE_TTL_MS;
    expect([holdLease(state, `${FIRST}.1`), holdLease(state, "foreign")]).toEqual([true, false]);
    expect(state.nextLeaseEndMs()).toBe(endMs);
    heartbeat(state, [`${FIRST}.1`], 2_000);
    expect([expireLeases(state, endMs - 1), expireLeases(state, endMs)]).toEqual([0, 1]);
    expect(holdLease(state, `${FIRST}.1`)).toBe(false);
  });

  it("whose executor loses its socket expires after the time of a reconnect, unless it is held again", () => {
    const { state } = started(2);
    const [kept, lost] = [`${FIRST}.1`, `${FIRST + 1}.1`];
    for (const attemptId of [kept, lost]) {
      holdLease(state, attemptId);
      doubtLease(state, attemptId, 5_000);
    }
    doubtLease(state, "foreign", 5_000);
    holdLease(state, kept);
    expect(state.nextLeaseEndMs()).toBe(5_000 + FOUND_LEASE_TTL_MS);
    expect(expireLeases(state, 5_000 + FOUND_LEASE_TTL_MS)).toBe(1);
    expect([...state.attempts.keys()]).toEqual([kept]);
    // A doubt never extends a lease.
    doubtLease(state, kept, 10_000_000);
    expect(state.nextLeaseEndMs()).toBeLessThan(10_000_000);
  });
});

describe("a single call's end", () => {
  it("returns its group, delay and cost; its Worker requests the retry", () => {
    const engine = new TestEngine({ windowMs: 50, random: () => 0.25 });
    engine.call("a", 1_000);
    engine.call("b", 1_010);
    engine.startAll(1_010);
    const failed = settle(engine.state, "a.1", failure("transient"), 1_200);
    expect(failed).toMatchObject({ retryInMs: 200, estimated: false, queuedMs: 10 });
    expect(failed?.parallelGroupId).toMatch(/^pg-0000000001000-[0-9a-z]{6}$/);
    expect(settle(engine.state, "b.1", success(), 1_200)?.parallelGroupId).toBe(failed?.parallelGroupId);
    expect([engine.state.queue.delayedCount, engine.state.attempts.size]).toEqual([0, 0]);
  });

  it("belongs to no group if it arrived alone", () => {
    const engine = new TestEngine();
    engine.call("a", 1_000);
    engine.startAll(1_000);
    expect(settle(engine.state, "a.1", success(), 1_200)?.parallelGroupId).toBeNull();
  });
});

describe("the busy time", () => {
  it("counts once, however many attempts are in flight, and not while none is", () => {
    const engine = new TestEngine();
    engine.call("a", 0);
    engine.call("b", 0);
    engine.startAll(0);
    settle(engine.state, "a.1", success(), 60);
    settle(engine.state, "b.1", success(), 100);
    engine.call("c", 500);
    engine.startAll(500);
    settle(engine.state, "c.1", success(), 530);
    const { busyMs, peakParallel, attempts } = engine.state.directShard().totals;
    expect([busyMs, peakParallel, attempts]).toEqual([130, 2, 3]);
  });
});

describe("a call with on_lost 'fail'", () => {
  const lostSlot = (onLost: "retry" | "fail", how: "reported" | "expired") => {
    const engine = new TestEngine({ limits: { usd: 1_000_000 } });
    const group = engine.open(alike(1), { onLost });
    engine.startAll(1_000);
    if (how === "reported") settle(engine.state, `${FIRST}.1`, failure("unknown"), 2_000);
    else expireLeases(engine.state, 1_000 + LEASE_TTL_MS);
    return { status: group.status, spentNanoUsd: engine.state.ledger.spent.usd };
  };

  it("is not retried after an unknown outcome, reported or not, and stays charged", () => {
    for (const how of ["reported", "expired"] as const) {
      expect(lostSlot("fail", how)).toEqual({ status: "failed", spentNanoUsd: 300 });
      expect(lostSlot("retry", how)).toEqual({ status: "running", spentNanoUsd: 300 });
    }
  });

  it("is retried after failures that were not billed", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(2), { onLost: "fail" });
    engine.startAll(0);
    expect(settle(engine.state, `${FIRST}.1`, failure("transient"), 10)?.retryInMs).toBe(0);
    expect(settle(engine.state, `${FIRST + 1}.1`, failure("rate_limited"), 10)?.retryInMs).toBe(0);
    expect(group.counts.queued).toBe(2);
  });

  it("may be a single call: its Worker gets no delay for a retry", () => {
    const engine = new TestEngine();
    engine.call("fails", 0, { onLost: "fail" });
    engine.call("retries", 0, { onLost: "retry" });
    engine.startAll(0);
    expect(settle(engine.state, "fails.1", failure("unknown"), 10)?.retryInMs).toBeNull();
    expect(settle(engine.state, "retries.1", failure("unknown"), 10)?.retryInMs).toBe(0);
  });
});

describe("an attempt that was stopped", () => {
  const stopped = { ...failure("unknown"), reason: STOPPED } as const;

  it("is not retried", () => {
    const { state, group } = started();
    expect(settle(state, `${FIRST}.1`, stopped, 2_000)?.retryInMs).toBeNull();
    expect(group.status).toBe("failed");
  });

  it("is cancelled with its group, and failed if its group continues", () => {
    const { state, group } = started(2);
    settle(state, `${FIRST}.1`, stopped, 2_000);
    drainGroup(state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 2_100);
    settle(state, `${FIRST + 1}.1`, stopped, 2_200);
    expect([group.stateOf(0), group.stateOf(1), group.status]).toEqual(["failed", "cancelled", "cancelled"]);
  });

  it("has failed if its group was stopped by a failure", () => {
    const { state, group } = started(2);
    drainGroup(state, group, { state: "cancelled", reason: STOPPED, cause: "abort" }, 2_100);
    settle(state, `${FIRST + 1}.1`, stopped, 2_200);
    expect(group.stateOf(1)).toBe("failed");
  });
});

describe("the usage of a model", () => {
  it("is counted by upstream and model, for every attempt that was answered", () => {
    const { state } = started(3);
    settle(state, `${FIRST}.1`, success({ promptTokens: 40, completionTokens: 7 }), 1_500);
    settle(state, `${FIRST + 1}.1`, failure("rejected"), 1_500);
    settle(state, `${FIRST + 2}.1`, success({ promptTokens: 2 }), 1_500);
    expect(state.shards.get(0)?.totals.models).toEqual({
      "acme/gpt-x": { calls: 3, promptTokens: 42, completionTokens: 7, costNanoUsd: 56 },
    });
  });
});

describe("a slot in the background", () => {
  const attemptsOf = (outcome: (engine: TestEngine, attempt: number) => void): number => {
    const engine = new TestEngine();
    const group = engine.open(alike(1), { background: true });
    let attempts = 0;
    for (let nowMs = 0; !group.done && attempts < 100; nowMs += 60_000) {
      const [assignment] = engine.turn([1], nowMs).assignments;
      if (assignment === undefined) continue;
      attempts += 1;
      outcome(engine, nowMs);
    }
    return attempts;
  };

  it("is retried many times while it is rate-limited", () => {
    const attempts = attemptsOf((engine, nowMs) => {
      for (const id of engine.state.attempts.keys()) settle(engine.state, id, failure("rate_limited"), nowMs);
    });
    expect(attempts).toBe(BATCH_ATTEMPTS_MAX);
  });

  it("is retried many times while its executors are lost", () => {
    const attempts = attemptsOf((engine, nowMs) =>
      loseAttempts(engine.state, [...engine.state.attempts.keys()], nowMs),
    );
    expect(attempts).toBe(BATCH_ATTEMPTS_MAX);
  });

  it("gets a few more attempts than others if its upstream fails", () => {
    const attempts = attemptsOf((engine, nowMs) => {
      for (const id of engine.state.attempts.keys()) settle(engine.state, id, failure("transient"), nowMs);
    });
    expect(attempts).toBe(BATCH_FAILED_ATTEMPTS_MAX);
  });
});
