/** What a run says of a large batch before its pages are made: what its opening would say of the whole of it. */
import { describe, expect, it } from "vitest";
import { refusalOfBatch } from "../../../../../durable-objects/run/groups/unpaid.ts";
import type { CallFacts } from "../../../../../src/call.ts";
import type { PricedRequest } from "../../../../../src/objects/methods/groups.ts";
import { CallPageBuilder } from "../../../../../src/run/queue/call-page.ts";
import { makeTarget, TestEngine } from "../../../../support/engine.ts";

const plain = (promptBytes: number, model: string | null): CallFacts => ({
  promptBytes,
  messageCount: 1,
  mediaParts: 0,
  model,
  maxTokens: 100,
  priority: 2,
  timeoutMs: null,
});

const CALLS = 3_000;

function requestOf(kinds: readonly (readonly [CallFacts, number])[], fields: Partial<PricedRequest> = {}) {
  const builder = new CallPageBuilder({});
  const texts = kinds.map(([facts, count]) => builder.kind(facts, count));
  const asked = { count: CALLS, onBudget: "partial", single: false, idempotencyKey: null } as const;
  return { ...asked, models: builder.models, kinds: texts, ...fields };
}

/** A run with so many calls left. It has opened a group under the key "known". */
function runOf(calls: number | null, { groups = 0, onExhausted = "fail" as "fail" | "pause" } = {}) {
  const { state: engine } = new TestEngine({ limits: { calls } });
  let resolved = 0;
  const resolve = (model: string | null) => {
    resolved += 1;
    return model === "unknown" ? ({ reason: "model_not_found", model } as const) : makeTarget();
  };
  const run = {
    engine,
    settings: { onExhausted },
    targets: { resolve },
    replay: null,
    openCounts: { singles: 0, groups },
    keyRecord: (key: string) => (key === "known" ? { seq: 1, hash: "hash" } : null),
  };
  return { run, resolved: () => resolved };
}

const TWO_KINDS = [
  [plain(1, null), CALLS - 1_000],
  [plain(2, "m"), 1_000],
] as const;

describe("a large batch that is asked about", () => {
  it("is refused if the budget pays for hardly any of its calls, and each kind is priced once", () => {
    const { run, resolved } = runOf(2);
    const refused = refusalOfBatch(run, requestOf(TWO_KINDS));
    expect(refused).toMatchObject({ ok: false, reason: { reason: "infeasible", dimension: "calls", needed: CALLS } });
    // Once for each model, and once for each kind.
    expect(resolved()).toBe(4);
  });

  it("may open if the budget pays for a part of it, unless all of it must fit", () => {
    const { run } = runOf(CALLS - 1);
    expect(refusalOfBatch(run, requestOf(TWO_KINDS))).toBeNull();
    const whole = requestOf(TWO_KINDS, { onBudget: "refuse" });
    expect(refusalOfBatch(run, whole)).toMatchObject({ reason: { reason: "infeasible", needed: CALLS } });
    expect(refusalOfBatch(runOf(CALLS).run, whole)).toBeNull();
    expect(refusalOfBatch(runOf(null).run, whole)).toBeNull();
  });

  it("may open if it waits for a higher limit", () => {
    expect(refusalOfBatch(runOf(2, { onExhausted: "pause" }).run, requestOf(TWO_KINDS))).toBeNull();
    expect(refusalOfBatch(runOf(2).run, requestOf(TWO_KINDS, { onExhausted: "pause" }))).toBeNull();
  });

  it("is answered by its key, whatever is left of the budget", () => {
    const { run } = runOf(0);
    expect(refusalOfBatch(run, requestOf(TWO_KINDS, { idempotencyKey: "known" }))).toBeNull();
    expect(refusalOfBatch(run, requestOf(TWO_KINDS, { idempotencyKey: "new" }))).toMatchObject({ ok: false });
  });

  it("is refused for its models, and for what is open, before its budget: as by its opening", () => {
    const unknown = requestOf([...TWO_KINDS, [plain(1, "unknown"), 1]]);
    expect(refusalOfBatch(runOf(2).run, unknown)).toMatchObject({ reason: { reason: "model_not_found" } });
    const full = runOf(2, { groups: 1_000_000 });
    expect(refusalOfBatch(full.run, requestOf(TWO_KINDS))).toMatchObject({ reason: { reason: "overloaded" } });
  });
});
