import { describe, expect, it } from "vitest";
import { queueLook } from "../../../../src/run/steps/queue-look.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { alike, success, TestEngine } from "../../../support/engine.ts";

/** A group of calls that reserve 300 nano-USD each and cost 10, under a budget for so many at once. */
function groupUnder(usd: number, calls: number) {
  const engine = new TestEngine({ limits: { usd }, width: 8 });
  const group = engine.open(alike(calls), { openedAtMs: 0, concurrency: 6 });
  const end = (index: number, nowMs: number): void => {
    settle(engine.state, `${slotIdOf(1, index)}.1`, success({ promptTokens: 6, completionTokens: 2 }), nowMs);
    engine.startAll(nowMs);
  };
  engine.startAll(0);
  return { group, end, engine };
}

describe("the metrics of a group", () => {
  it("say that its budget has narrowed it: how wide it was, of how much, and what to do", () => {
    const { group, end } = groupUnder(700, 4);
    expect(group.inFlight).toBe(2);
    end(0, 100);
    end(1, 200);
    expect(group.metrics(200).narrowed_by).toMatchObject({
      by: "budget",
      dimension: "usd",
      width: 2,
      of: 4,
      share: 1,
      per_call: expect.closeTo(3e-7, 10),
      remedy: expect.stringContaining("lower max_tokens"),
    });
  });

  it("are in a look at the run's queue as long as it is open", () => {
    const { group, end, engine } = groupUnder(700, 4);
    end(0, 100);
    end(1, 200);
    expect(queueLook(engine.state, 200).narrowedBy).toEqual(group.metrics(200).narrowed_by);
    end(2, 300);
    end(3, 400);
    expect([group.done, queueLook(engine.state, 400)]).toEqual([true, { inFlight: 0, queued: 0, waits: [] }]);
  });

  it("say nothing where only its last calls have waited, or none has", () => {
    const wide = groupUnder(1_000_000, 6);
    for (const index of [0, 1, 2, 3, 4, 5]) wide.end(index, 100 + index);
    expect(wide.group.metrics(200)).not.toHaveProperty("narrowed_by");
    const late = groupUnder(700, 3);
    late.end(0, 100);
    late.end(1, 10_000);
    late.end(2, 10_100);
    expect(late.group.done).toBe(true);
    expect(late.group.metrics(10_100)).not.toHaveProperty("narrowed_by");
  });
});
