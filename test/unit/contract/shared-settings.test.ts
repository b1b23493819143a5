/** What the calls of a request share is read once and stored once, however many calls there are. Work is counted, not timed. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallFacts } from "../../../src/call.ts";
import { parseBatch } from "../../../src/contract/batch.ts";
import { parseDag } from "../../../src/contract/graph/dag.ts";
import { parseDagPatch } from "../../../src/contract/graph/patch.ts";
import { parseQuery } from "../../../src/contract/query.ts";
import { CallPageBuilder, readCall, withoutDefaults } from "../../../src/run/queue/call-page.ts";

function accepted<T>(read: { ok: true; value: T } | { ok: false; reason: unknown }): T {
  if (!read.ok) throw new Error(JSON.stringify(read.reason));
  return read.value;
}

/** A value that counts how often it is written as JSON, which is what reading it begins with. */
function counted(value: unknown) {
  const writes = { count: 0 };
  return { writes, value: { toJSON: () => ((writes.count += 1), value) } };
}

const ITEMS = 40;
const each = <T>(of: (index: number) => T): T[] => Array.from({ length: ITEMS }, (_, index) => of(index));

describe("params that all calls share are read once", () => {
  it("under items with entries of their own", () => {
    const { writes, value } = counted("x".repeat(1_000));
    accepted(parseBatch({ params: { stop: value }, items: each((seed) => ({ prompt: "a", params: { seed } })) }));
    expect(writes.count).toBe(1);
  });

  it("under items that replace another shared entry: then each entry is read once more", () => {
    const { writes, value } = counted("x".repeat(1_000));
    const items = each((seed) => ({ prompt: "a", params: { seed } }));
    accepted(parseBatch({ params: { stop: value, seed: 0 }, items }));
    expect(writes.count).toBe(2);
  });

  it("under tasks of a graph, and of its changes", () => {
    const { writes, value } = counted("x".repeat(1_000));
    const tasks = each((seed) => ({ id: `t${seed}`, prompt: "a", params: { seed } }));
    const { settings } = accepted(parseDag({ params: { stop: value }, tasks }));
    expect(writes.count).toBe(1);
    const operations = tasks.map((task) => ({ op: "add_task", task }));
    accepted(parseDagPatch({ version: 1, operations }, settings));
    expect(writes.count).toBe(2);
  });
});

it("reads the content of a request with n, or with agents, once", () => {
  const message = { role: "user", content: "x".repeat(1_000) };
  for (const times of [{ n: ITEMS }, { agents: each((index) => ({ id: `a${index}` })) }]) {
    const writes = { count: 0 };
    const messages = [{ ...message, toJSON: () => ((writes.count += 1), message) }];
    const { calls } = accepted(parseBatch({ messages, ...times }));
    expect([calls.length, writes.count]).toEqual([ITEMS, 1]);
  }
});

const aText = fc.string({ maxLength: 9_000, unit: "grapheme" });
const aList = fc.constantFrom(null, [], [{ type: "function", function: { name: "f" } }]);
const entries = fc.record(
  {
    stop: aText,
    user: aText,
    made_up: fc.oneof(aText, fc.constant(null)),
    seed: fc.integer(),
    speed: fc.constantFrom("fast", "standard", null),
    service_tier: fc.constantFrom("flex", "priority", null),
    tools: aList,
    functions: aList,
    thinking: fc.record({ budget_tokens: fc.constantFrom(1, 1_000_000) }),
  },
  { requiredKeys: [] },
);
const factsOf = (params: unknown, own?: unknown): CallFacts => {
  const request = own === undefined ? { prompt: "a", params } : { items: [{ prompt: "a", params: own }], params };
  const [facts] =
    own === undefined
      ? [accepted(parseQuery(request)).facts]
      : accepted(parseBatch(request)).calls.map((call) => call.facts);
  if (facts === undefined) throw new Error("no call");
  return facts;
};

it("reserves for entries of both as for one object with them, and never fewer tokens", () => {
  fc.assert(
    fc.property(entries, entries, (shared, own) => {
      const { textTokensMax: whole, ...facts } = factsOf({ ...shared, ...own });
      const { textTokensMax: parts, ...together } = factsOf(shared, own);
      expect({ ...together, unbounded: together.unbounded?.length }).toEqual({
        ...facts,
        unbounded: facts.unbounded?.length,
      });
      expect(parts ?? together.promptBytes).toBeGreaterThanOrEqual(whole ?? facts.promptBytes);
    }),
    { numRuns: 300 },
  );
});

describe("what calls share is stored once", () => {
  const linesOf = (request: unknown) => {
    const { calls, defaults } = accepted(parseBatch(request));
    const builder = new CallPageBuilder(defaults);
    const pages = [...calls.map((call) => builder.add(call)), builder.flush()].filter((page) => page !== null);
    return { defaults: JSON.stringify(defaults), lines: pages.flatMap((page) => page.calls.split("\n")) };
  };

  it("also where an item has entries of its own, and is read as the client sent it", () => {
    const stop = "x".repeat(1_000);
    const { defaults, lines } = linesOf({
      params: { stop, seed: 0 },
      items: each((seed) => ({ prompt: "a", params: { seed } })),
    });
    expect(lines[7]).toBe('{"params":{"seed":7},"prompt":"a"}');
    expect(readCall(lines[7] ?? "", defaults)).toEqual({ params: { stop, seed: 7 }, prompt: "a" });
  });

  it("and a call whose row has all entries, as rows of earlier gateways have, is read as it is", () => {
    const call = { prompt: "a", params: { stop: "x", seed: 7 } };
    expect(readCall(JSON.stringify(call), JSON.stringify({ params: { stop: "x", seed: 0 } }))).toEqual(call);
  });

  it("also the content that n calls have", () => {
    const { defaults, lines } = linesOf({ prompt: "x".repeat(1_000), n: ITEMS });
    expect(lines).toEqual(each(() => "{}"));
    expect(readCall("{}", defaults)).toEqual({ prompt: "x".repeat(1_000) });
  });

  it("also for the tasks that a change adds to a graph", () => {
    const settings = { system: "s".repeat(1_000), params: { stop: "x", seed: 0 } };
    const operations = [{ op: "add_task", task: { id: "t", prompt: "a", params: { seed: 7 } } }];
    const change = accepted(parseDagPatch({ version: 1, operations }, settings));
    const [operation] = change.operations;
    if (operation === undefined || !("task" in operation)) throw new Error("no task");
    expect(withoutDefaults(operation.task.call.body, change.defaults)).toEqual({ params: { seed: 7 }, prompt: "a" });
  });
});
