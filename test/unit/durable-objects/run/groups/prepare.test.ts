/** What is read and counted of large groups before their turn: in how many slices, and that it is what one piece of work finds. */
import { describe, expect, it } from "vitest";
import { addFloor } from "../../../../../durable-objects/run/groups/floors.ts";
import { preparing } from "../../../../../durable-objects/run/groups/prepare.ts";
import { quotingGroup } from "../../../../../durable-objects/run/groups/quote.ts";
import type { CallFacts } from "../../../../../src/call.ts";
import { SLICE_CHARS_MAX, SLICE_PIECE_CHARS } from "../../../../../src/limits.ts";
import { PLAIN_RULES } from "../../../../../src/objects/clients/groups/plain-rules.ts";
import type { OpenGroupRequest } from "../../../../../src/objects/methods/groups.ts";
import { zeroAmounts } from "../../../../../src/run/money/ledger.ts";
import { CallPageBuilder, type CallPage } from "../../../../../src/run/queue/call-page.ts";
import type { Sliced } from "../../../../../src/text/bytes/slices.ts";
import { makeTarget, TestEngine } from "../../../../support/engine.ts";

/** The pages of calls with these facts. */
function pagesOf(calls: readonly CallFacts[]): CallPage[] {
  const builder = new CallPageBuilder({});
  const pages = calls.map((facts) => builder.add({ body: { prompt: "a" }, facts }));
  return [...pages, builder.flush()].filter((page) => page !== null);
}

const PLAIN = {
  promptBytes: 92,
  messageCount: 1,
  mediaParts: 0,
  model: null,
  maxTokens: 100,
  timeoutMs: null,
} as const;

const calls = (count: number, fields: (at: number) => Partial<CallFacts> = () => ({})): CallFacts[] =>
  Array.from({ length: count }, (_, at) => ({ ...PLAIN, priority: 2, ...fields(at) }));

/** A run whose models cost the same, and what it was asked for a price. */
function runOf(staged: readonly CallPage[] | null, recorded: string | null = null) {
  const { state: engine } = new TestEngine();
  let asked = 0;
  const resolve = () => {
    asked += 1;
    return makeTarget();
  };
  const run = {
    engine,
    settings: { confirmOver: { calls: 1, nanoUsd: null } },
    targets: { resolve },
    replay: { hasAnswer: ({ content }: CallFacts) => content !== undefined && content === recorded },
    openings: { find: () => (staged === null ? null : 7) },
    keyRecord: () => null,
  };
  const store = { groups: { pageFacts: (seq: number) => (seq === 7 ? (staged ?? []) : []) } };
  return { run, store, asked: () => asked };
}

const requestOf = (count: number, fields: Partial<OpenGroupRequest> = {}): OpenGroupRequest => ({
  ...PLAIN_RULES,
  openKey: "key",
  count,
  models: [null],
  defaultsJson: "{}",
  detach: true,
  onBudget: "refuse",
  ...fields,
});
/** Several slices of calls with the shortest facts. */
const CALLS = 20_000;
const BATCH = { graph: null, isService: false } as const;

/** The result, and how many pauses it had. */
function counted<T>(work: Sliced<T>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const step = work.next();
    if (step.done === true) return { value: step.value, pauses };
  }
}

describe("a group that is to open", () => {
  it("is read as one piece finds it: staged pages first, then the last ones, with its floor and its quote", () => {
    const staged = pagesOf(calls(40));
    const last = pagesOf(calls(2, (at) => ({ promptBytes: 500 + at }))).map((page) => ({ ...page, firstIndex: 40 }));
    const { run, store } = runOf(staged);
    const { value, pauses } = counted(preparing(run, store, { request: requestOf(42), ...BATCH }, last, 0));
    expect(value.staged).toBe(7);
    expect(value.pages.map(({ firstIndex, slots }) => [firstIndex, slots.length])).toEqual([
      [0, 32],
      [32, 8],
      [40, 2],
    ]);
    expect(value.pages.flatMap(({ slots }) => slots.map(({ promptBytes }) => promptBytes))).toEqual([
      ...Array<number>(40).fill(92),
      500,
      501,
    ]);
    expect(value.floors.map(({ count }) => count)).toEqual([40, 1, 1]);
    expect(value.held?.calls).toBe(42);
    expect(pauses).toBe(0);
  });

  it("asks for the price of alike calls once, and keeps one object of their facts", () => {
    const { run, store, asked } = runOf(null);
    const pages = pagesOf(calls(CALLS));
    const { value } = counted(preparing(run, store, { request: requestOf(CALLS), ...BATCH }, pages, 0));
    expect(value.floors.map(({ count }) => count)).toEqual([CALLS]);
    expect(new Set(value.pages.flatMap(({ slots }) => slots)).size).toBe(1);
    // Once for its floor, and once for its quote.
    expect(asked()).toBe(2);
  });

  it("pauses after so many calls, however short their facts are", () => {
    const { run, store } = runOf(null);
    const pages = pagesOf(calls(CALLS, (at) => ({ promptBytes: at })));
    const request = requestOf(CALLS, { isConfirmed: true });
    const { pauses } = counted(preparing(run, store, { request, ...BATCH }, pages, 0));
    expect(pauses).toBeGreaterThanOrEqual(Math.floor((CALLS * SLICE_PIECE_CHARS) / SLICE_CHARS_MAX));
    const confirmed = counted(preparing(run, store, { request: requestOf(CALLS), ...BATCH }, pages, 0)).pauses;
    // Its quote is a part of the work.
    expect(confirmed).toBeGreaterThan(2 * pauses);
  });

  it("counts no floor where none is asked for, nor of calls that cost nothing: equal ones, and recorded ones", () => {
    const { run, store } = runOf(null, "known");
    const pages = pagesOf([
      ...calls(3, () => ({ dedupeKey: "a" })),
      ...calls(2, () => ({ content: "known" })),
      ...calls(1, () => ({ content: "new" })),
    ]);
    const floorsOf = (request: OpenGroupRequest) =>
      counted(preparing(run, store, { request, ...BATCH }, pages, 0)).value.floors;
    expect(floorsOf(requestOf(6)).map(({ count }) => count)).toEqual([1, 1]);
    expect(floorsOf(requestOf(6, { onBudget: "partial" }))).toEqual([]);
  });

  it("has no quote if it is the call of a judge", () => {
    const { run, store } = runOf(null);
    const asked = { request: requestOf(2), graph: null, isService: true };
    expect(counted(preparing(run, store, asked, pagesOf(calls(2)), 0)).value.held).toBeNull();
  });
});

describe("the floor of pages on their way", () => {
  it("is added in slices", () => {
    const facts = pagesOf(calls(CALLS, (at) => ({ promptBytes: at }))).map((page) => page.facts);
    const request = { floor: { ...zeroAmounts(), calls: 5 }, models: [null], facts, idempotencyKey: null };
    const { value, pauses } = counted(addFloor(runOf(null).run, request));
    expect(value).toMatchObject({ ok: true, floor: { calls: CALLS + 5 } });
    expect(pauses).toBeGreaterThanOrEqual(Math.floor((CALLS * SLICE_PIECE_CHARS) / SLICE_CHARS_MAX));
  });
});

describe("the quotes of a batch", () => {
  it("are made in slices, and alike calls in a row are quoted once", () => {
    const { run, asked } = runOf(null);
    const alike = counted(quotingGroup(run, [null], pagesOf(calls(10_000)), 0));
    if (!Array.isArray(alike.value)) throw new Error("refused");
    expect([alike.value.length, new Set(alike.value).size, asked()]).toEqual([10_000, 1, 1]);
    const each = counted(quotingGroup(run, [null], pagesOf(calls(10_000, (at) => ({ promptBytes: at }))), 0));
    if (!Array.isArray(each.value)) throw new Error("refused");
    expect(each.value.map(({ promptTokensMax }) => promptTokensMax)).toEqual(
      Array.from({ length: 10_000 }, (_, at) => at + 8),
    );
    expect(each.pauses).toBeGreaterThanOrEqual(Math.floor((10_000 * 4 * SLICE_PIECE_CHARS) / SLICE_CHARS_MAX));
  });
});
