/** How long calls took, as the run counts it: each once, when its last attempt has ended. */
import { describe, expect, it } from "vitest";
import { cancelQueuedSlot } from "../../../../src/run/steps/end-slot.ts";
import { percentilesOf } from "../../../../src/run/measures/percentiles.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { noTimes, sumTotals } from "../../../../src/run/measures/totals.ts";
import { alike, failure, success, TestEngine } from "../../../support/engine.ts";

const FIRST = slotIdOf(1, 0);

function timesOf({ state }: TestEngine) {
  const { times = noTimes() } = sumTotals([...state.shards.values()].map(({ totals }) => totals));
  return { latency: percentilesOf(times.latency), queued: percentilesOf(times.queued) };
}

/** All of one duration. */
const each = (ms: number) => ({ p50: ms, p95: ms, p99: ms });

describe("how long a call took", () => {
  it("is the time of all its attempts without the pause between them, and its queue that before the first one", () => {
    const engine = new TestEngine({ limits: { usd: 1_000_000 } });
    const group = engine.open(alike(1), { openedAtMs: 900 });
    engine.startAll(1_000);
    settle(engine.state, `${FIRST}.1`, failure("transient", null, 400), 1_400);
    expect(timesOf(engine)).toEqual({ latency: null, queued: null });
    engine.startAll(9_000);
    settle(engine.state, `${FIRST}.2`, success({}, 70), 9_070);
    expect(timesOf(engine)).toEqual({ latency: each(470), queued: each(100) });
    expect(group.metrics(9_070)).toMatchObject({ latency_ms: each(470), queued_ms: each(100) });
  });

  it("is the same of a single call, whose Worker knows what its earlier attempts took", () => {
    const engine = new TestEngine({ limits: { usd: 1_000_000 } });
    engine.call("a", 1_000);
    engine.startAll(1_030);
    settle(engine.state, "a.1", failure("transient", null, 400), 1_430);
    engine.call("a", 1_500, { attempt: 2, earlier: { latencyMs: 400, queuedMs: 30 } });
    engine.startAll(9_000);
    settle(engine.state, "a.2", success({}, 70), 9_070);
    expect(timesOf(engine)).toEqual({ latency: each(470), queued: each(30) });
  });

  it("is that of its last attempt, if what was before is not known", () => {
    const engine = new TestEngine({ limits: { usd: 1_000_000 } });
    engine.call("a", 1_000, { attempt: 2 });
    engine.startAll(1_200);
    settle(engine.state, "a.2", success({}, 70), 1_270);
    expect(timesOf(engine)).toEqual({ latency: each(70), queued: each(200) });
  });

  it("is not counted of a call that was never sent, and counted of one that failed", () => {
    const engine = new TestEngine({ limits: { usd: 1_000_000 }, width: 1 });
    const group = engine.open(alike(2), { openedAtMs: 1_000 });
    engine.startAll(1_000);
    const reason = { reason: "cancelled", message: "by the test" } as const;
    cancelQueuedSlot(engine.state, group, slotIdOf(1, 1), reason, 1_100);
    settle(engine.state, `${FIRST}.1`, failure("rejected", null, 250), 1_250);
    expect(timesOf(engine)).toEqual({ latency: each(250), queued: each(0) });
  });
});
