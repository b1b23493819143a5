/** Strict tiers in a group: a barrier between them, in the queue, in cancellation, and after a restart. */
import { describe, expect, it } from "vitest";
import { cancelGroup, cancelSlot } from "../../../../src/run/steps/cancel.ts";
import { giveUpStopped } from "../../../../src/run/steps/stopping.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { releaseTiers } from "../../../../src/run/steps/enqueue.ts";
import type { GroupHeader } from "../../../../src/run/group/group.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import { failure, success, TestEngine } from "../../../support/engine.ts";

const STOPPED: Reason = { reason: "cancelled", message: "by the test" };

/** A group of slots of these tiers at an upstream that takes one attempt. */
function opened(tiers: readonly (0 | 1 | 2)[], { rules, ...fields }: Partial<GroupHeader> = {}, width = 8) {
  const engine = new TestEngine({ width });
  const group = engine.open(
    tiers.map((tier) => ({ tier, ...(tier === 2 ? {} : { priority: tier === 0 ? 4 : 3 }) })),
    { rules: { tiers: "strict", ...rules }, ...fields },
  );
  releaseTiers(engine.state, group);
  return { engine, group };
}

const end = ({ state }: TestEngine, index: number, outcome = success(), attempt = 1) =>
  settle(state, `${slotIdOf(1, index)}.${attempt}`, outcome, 50);

describe("strict tiers", () => {
  it("start a tier only when all slots before it have ended", () => {
    const { engine, group } = opened([1, 0, 2, 0]);
    expect(engine.startAll(0)).toEqual(["1:1", "1:3"]);
    end(engine, 1);
    expect(engine.startAll(60)).toEqual([]);
    end(engine, 3, failure("rejected"));
    expect(engine.startAll(60)).toEqual(["1:0"]);
    end(engine, 0);
    expect(engine.startAll(70)).toEqual(["1:2"]);
    end(engine, 2);
    expect([group.done, group.status]).toEqual([true, "escalated"]);
  });

  it("wait for the retry of a slot before them", () => {
    const { engine } = opened([0, 1]);
    expect(engine.startAll(0)).toEqual(["1:0"]);
    end(engine, 0, failure("transient", 1_000));
    expect(engine.startAll(500)).toEqual([]);
    expect(engine.startAll(100_000)).toEqual(["1:0"]);
    end(engine, 0, success(), 2);
    expect(engine.startAll(100_100)).toEqual(["1:1"]);
  });

  it("are released by the cancellation of a slot, queued or in flight", () => {
    const { engine, group } = opened([0, 0, 1], {}, 1);
    expect(engine.startAll(0)).toEqual(["1:0"]);
    cancelSlot(engine.state, group, 1, STOPPED, 10);
    cancelSlot(engine.state, group, 0, STOPPED, 10);
    expect(engine.startAll(20)).toEqual(["1:2"]);
  });

  it("end with their group, held slots too: cancelled, late, or stopped early", () => {
    const cancelled = opened([0, 1, 2]);
    cancelled.engine.startAll(0);
    cancelGroup(cancelled.engine.state, cancelled.group, STOPPED, 10);
    expect([cancelled.group.done, cancelled.group.counts.cancelled]).toEqual([true, 3]);
    const late = opened([0, 1, 2], { deadlineMs: 100 });
    late.engine.startAll(0);
    expireQueued(late.engine.state, null, 100);
    expect(late.group.counts).toMatchObject({ running: 1, failed: 2 });
    expect(late.engine.startAll(110)).toEqual([]);
    const stopped = opened([0, 1, 2], { rules: { stopWhen: { kind: "n_success", n: 1, shadow: false } } });
    stopped.engine.startAll(0);
    end(stopped.engine, 0);
    giveUpStopped(stopped.engine.state, 50);
    expect([stopped.group.status, stopped.group.saved?.calls]).toEqual(["completed", 2]);
    const aborted = opened([0, 1, 2], { rules: { onError: "abort" } });
    aborted.engine.startAll(0);
    end(aborted.engine, 0, failure("rejected"));
    expect([aborted.group.status, aborted.group.counts.cancelled]).toEqual(["escalated", 2]);
  });

  it("do not hold the slots of other groups", () => {
    const { engine } = opened([0, 1]);
    engine.open([{}]);
    expect(engine.startAll(0)).toEqual(["1:0", "2:0"]);
  });
});

it("a group whose tiers only order starts all of them", () => {
  const { engine, group } = opened([1, 0, 2], { rules: { tiers: "priority" } });
  expect(engine.startAll(0)).toEqual(["1:1", "1:0", "1:2"]);
  end(engine, 0, failure("rejected"));
  end(engine, 1);
  end(engine, 2);
  expect([group.status, group.tiers?.failures.counts]).toEqual(["partial", [0, 1, 0]]);
});
