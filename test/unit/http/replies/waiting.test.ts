import { describe, expect, it } from "vitest";
import { groupWaits, waitingFor } from "../../../../src/contract/groups.ts";
import type { WaitingFor } from "../../../../src/run/steps/waiting-for.ts";
import { runningJson } from "../../../../src/http/replies/batch-json.ts";
import { resultsPageOf } from "../../../../src/http/replies/results-page.ts";
import { shownWaiting, shownWaits } from "../../../../src/http/replies/waiting.ts";
import { groupView, readerOf, slotView } from "./views.ts";

const EACH: readonly (readonly [WaitingFor, object])[] = [
  [
    { kind: "gate", gate: "acme#KEY_2", reason: "stopped", readyInMs: null },
    { gate: "acme#KEY_2", reason: "stopped", ready_in_ms: null },
  ],
  [
    { kind: "gate", gate: "acme", reason: "tokens_per_minute", readyInMs: 2_300 },
    { gate: "acme", reason: "tokens_per_minute", ready_in_ms: 2_300 },
  ],
  [
    { kind: "gate", gate: "acme", reason: "width", model: "acme-large", readyInMs: null },
    { gate: "acme", reason: "width", model: "acme-large", ready_in_ms: null },
  ],
  [{ kind: "budget", dimension: "prompt_tokens" }, { budget: "prompt_tokens" }],
  [{ kind: "dependency", tasks: ["a", "b"] }, { dependency: ["a", "b"] }],
  [
    { kind: "retry", readyInMs: 40 },
    { retry: true, ready_in_ms: 40 },
  ],
  [{ kind: "permit" }, { permit: true }],
];

describe("what a call waits for", () => {
  it.each(EACH)("%o is shown as documented", (known, shown) => {
    expect(shownWaiting(known)).toEqual(shown);
    expect(waitingFor().parse(shownWaiting(known))).toEqual(shown);
    expect(groupWaits().parse(shownWaits([{ waitingFor: known, slots: 3 }]))).toEqual([{ ...shown, slots: 3 }]);
  });

  it("is null in a page of results for a slot that is not queued, and for one of an object that does not say", async () => {
    const slots = [
      slotView({ index: 0 }),
      slotView({ index: 1, state: "queued", text: null, waitingFor: { kind: "permit" } }),
      slotView({ index: 2, state: "queued", text: null }),
    ];
    const json = await resultsPageOf({ count: 3, style: "bracket", reader: readerOf(slots) }, { after: -1, limit: 9 });
    const page: { data: unknown } = JSON.parse(json);
    expect(page.data).toMatchObject([{ waiting_for: null }, { waiting_for: { permit: true } }, { waiting_for: null }]);
  });

  it("is listed in the state of a running group, and is empty where the object does not say", () => {
    const waitsFor = [{ waitingFor: { kind: "permit" }, slots: 5 }] as const;
    expect(runningJson(groupView(5, { waitsFor: [...waitsFor] })).waiting_for).toEqual([{ permit: true, slots: 5 }]);
    expect(runningJson(groupView(5)).waiting_for).toEqual([]);
  });

  it("has the group's place in the queue, and none where the object does not say", () => {
    const { queue } = runningJson(groupView(5, { queuedAhead: 0 }));
    expect(queue).toEqual({ queue_position: 1, queued_ahead: 0 });
    expect(runningJson(groupView(5))).not.toHaveProperty("queue");
  });
});
