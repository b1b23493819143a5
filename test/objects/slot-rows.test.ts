/** Slots are read from their rows as they were written, whatever they have, and whatever else is written with them. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import type { SlotRecord } from "../../src/run/group/record.ts";
import { slotIdOf } from "../../src/run/queue/slot.ts";

const ANSWERED: Omit<SlotRecord, "id"> = {
  state: "completed",
  attempts: 2,
  notBeforeMs: null,
  latencyMs: 203,
  queuedMs: 12,
  promptTokens: 20,
  completionTokens: 6,
  costNanoUsd: 6_600,
  estimated: false,
  model: "some-model",
  finishReason: "stop",
  text: "an answer",
  reason: null,
};

/** What a row may have beside, or in place of, what most have. */
const KINDS: Partial<SlotRecord>[] = [
  {},
  { cacheHitTokens: 7, reasoningTokens: 3 },
  { estimated: true },
  { text: "" },
  { model: null, finishReason: null },
  { cappedBy: "budget", upstream: "other" },
  { state: "queued", notBeforeMs: 5_000, text: null, reason: { reason: "cancelled", message: "once more" } },
  { state: "failed", text: "its last answer", reason: { reason: "cancelled", message: "of a failure" } },
  { state: "cancelled", attempts: 0, text: null, reason: { reason: "cancelled", message: "by its client" } },
  { reason: { reason: "cancelled", message: "it completed, and says why" } },
];

/** Twice as many as a statement takes, of each kind, in turn. */
const MIXED = Array.from({ length: 20 * KINDS.length }, (_, index): SlotRecord => {
  const kind = KINDS[index % KINDS.length];
  return { ...ANSWERED, latencyMs: index, ...kind, id: slotIdOf(1, index) };
});

it("slots that are written together are read as they were, whatever each of them has", async () => {
  await inStorage(({ slots }) => {
    slots.put(MIXED);
    expect([...slots.from(1)]).toEqual(MIXED);
    for (const slot of MIXED.slice(0, KINDS.length)) expect(slots.one(slot.id)).toEqual(slot);
  });
});

it("nothing is left of what a slot had before", async () => {
  await inStorage(({ slots }) => {
    slots.put(MIXED);
    const next = MIXED.map(({ id }, index) => ({ ...ANSWERED, ...KINDS[(index + 1) % KINDS.length], id }));
    slots.put(next);
    expect([...slots.from(1)]).toEqual(next);
  });
});

async function inStorage(check: (store: RunStore) => void): Promise<void> {
  await runInDurableObject(env.GATES.getByName(crypto.randomUUID()), (_: unknown, { storage }: DurableObjectState) => {
    const store = new RunStore(storage);
    store.create();
    check(store);
  });
}
