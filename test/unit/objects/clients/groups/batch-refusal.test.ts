/** What a Worker asks about a large batch before it makes pages of it, and when it asks nothing. */
import { describe, expect, it } from "vitest";
import type { CallFacts } from "../../../../../src/call.ts";
import { Refusal, type Reason } from "../../../../../src/errors.ts";
import { ITEMS_PER_BATCH_MAX, OPENED_AT_ONCE_MAX, PRICED_KINDS_MAX } from "../../../../../src/limits.ts";
import type { RunStub } from "../../../../../src/objects/clients/caller.ts";
import { refuseUnpaid, type BatchAsked } from "../../../../../src/objects/clients/groups/batch-refusal.ts";
import { PLAIN_RULES } from "../../../../../src/objects/clients/groups/plain-rules.ts";
import type { PricedRequest } from "../../../../../src/objects/methods/groups.ts";
import type { Refused } from "../../../../../src/objects/methods/types.ts";
import { readKind } from "../../../../../src/run/queue/call-page.ts";

const facts = (promptBytes: number, model: string | null = null): CallFacts => ({
  promptBytes,
  messageCount: 1,
  mediaParts: 0,
  model,
  maxTokens: null,
  priority: 2,
  timeoutMs: null,
});

/** A run that answers with `reply`, and what it was asked. */
function runWith(reply: () => Refused | null) {
  const requests: PricedRequest[] = [];
  const refusalOfBatch = (request: PricedRequest): Promise<Refused | null> => {
    requests.push(request);
    return Promise.resolve(null).then(reply);
  };
  const run = {
    callWithRetry: async <T>(call: (run: RunStub) => PromiseLike<T>): Promise<T> => call({ refusalOfBatch } as never),
  };
  return { run, requests };
}

type Fields = Partial<Omit<BatchAsked, "rules">> & { rules?: Partial<BatchAsked["rules"]> };

function batchOf(kinds: readonly CallFacts[], count: number, { rules, ...fields }: Fields = {}): BatchAsked {
  const [first] = kinds;
  if (first === undefined) throw new Error("expected a kind");
  const calls = Array.from({ length: count }, (_, at) => ({ facts: kinds[at % kinds.length] ?? first }));
  return { calls, dedupe: false, ...fields, rules: { ...PLAIN_RULES, count, ...rules } };
}

const MANY = OPENED_AT_ONCE_MAX + 1;

describe("a large batch before its pages are made", () => {
  it("is one question, a line for each kind of its calls, however many they are", async () => {
    const { run, requests } = runWith(() => null);
    const kinds = [facts(1), facts(7, "up/m"), facts(1, "up/m")];
    const rules = { onBudget: "refuse", idempotencyKey: { key: "k", hash: "h" }, onExhausted: "pause" } as const;
    expect(await refuseUnpaid(run, batchOf(kinds, ITEMS_PER_BATCH_MAX, { rules }))).toBe(true);
    const [{ kinds: texts, models, ...rest } = { kinds: [], models: [] }] = requests;
    expect(requests).toHaveLength(1);
    expect(rest).toEqual({
      count: ITEMS_PER_BATCH_MAX,
      onBudget: "refuse",
      onExhausted: "pause",
      single: false,
      idempotencyKey: "k",
    });
    const read = texts.map((text) => readKind(text, models));
    expect(read.map(({ slot, count }) => [slot.promptBytes, slot.model, count])).toEqual([
      [1, null, 16_667],
      [7, "up/m", 16_667],
      [1, "up/m", 16_666],
    ]);
  });

  it("is refused with the run's reason", async () => {
    const reason: Reason = { reason: "infeasible", message: "never" };
    const { run } = runWith(() => ({ ok: false, reason }));
    await expect(refuseUnpaid(run, batchOf([facts(1)], MANY))).rejects.toEqual(new Refusal(reason));
  });

  it.each<[what: string, batch: BatchAsked]>([
    ["it is small", batchOf([facts(1)], OPENED_AT_ONCE_MAX)],
    ["its calls are not at hand", { ...batchOf([facts(1)], MANY), calls: new Set([{ facts: facts(1) }]) }],
    [
      "its calls are of too many kinds",
      batchOf(
        Array.from({ length: PRICED_KINDS_MAX + 1 }, (_, at) => facts(at)),
        MANY,
      ),
    ],
    ["equal calls share their answer", batchOf([facts(1)], MANY, { dedupe: true })],
    ["its calls depend on each other", batchOf([facts(1)], MANY, { graph: { tasks: [] } })],
    ["recorded answers cost nothing", batchOf([facts(1)], MANY, { rules: { replay: { epoch: "e" } } })],
    ["its lines fail one by one", batchOf([facts(1)], MANY, { rules: { batchId: "batch_1" } })],
  ])("is left to its opening where %s", async (_, batch) => {
    const { run, requests } = runWith(() => ({ ok: false, reason: { reason: "infeasible", message: "never" } }));
    expect(await refuseUnpaid(run, batch)).toBe(false);
    expect(requests).toEqual([]);
  });

  it("is left to its opening by an object of an earlier version, and fails with any other error", async () => {
    const outdated = runWith(() => {
      throw new Error('The RPC receiver does not implement the method "refusalOfBatch".');
    });
    expect(await refuseUnpaid(outdated.run, batchOf([facts(1)], MANY))).toBe(false);
    const broken = runWith(() => {
      throw new TypeError("a bug");
    });
    await expect(refuseUnpaid(broken.run, batchOf([facts(1)], MANY))).rejects.toThrow("a bug");
  });
});
