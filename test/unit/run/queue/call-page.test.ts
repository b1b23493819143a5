import { describe, expect, it } from "vitest";
import type { CallBody, CallFacts } from "../../../../src/call.ts";
import {
  CallPageBuilder,
  isCopied,
  readFacts,
  readNames,
  type CallPage,
  placedPage,
  placeOf,
} from "../../../../src/run/queue/call-page.ts";
import { CALL_PAGE_BYTES_MAX, CALL_PAGE_SLOTS_MAX } from "../../../../src/limits.ts";

const facts = (fields: Partial<CallFacts> = {}): CallFacts => ({
  promptBytes: 1,
  messageCount: 1,
  mediaParts: 0,
  model: null,
  maxTokens: null,
  priority: 2,
  timeoutMs: null,
  ...fields,
});

function paged(bodies: readonly CallBody[], builder = new CallPageBuilder({})): CallPage[] {
  const pages = bodies.map((body) => builder.add({ body, facts: facts() }));
  return [...pages, builder.flush()].filter((page) => page !== null);
}

const linesOf = (page: CallPage | undefined): unknown[] =>
  (page?.calls ?? "").split("\n").map((line): unknown => JSON.parse(line));

describe("calls with one object of facts", () => {
  it("become the same pages as calls that have their own, also between others, and with ids", () => {
    const shared = facts({ promptBytes: 7 });
    const calls = [
      { body: { prompt: "a" }, facts: shared },
      { body: { prompt: "b" }, facts: shared },
      { body: { prompt: "c" }, facts: shared, id: "named" },
      { body: { prompt: "d" }, facts: shared },
      { body: { prompt: "e" }, facts: facts({ promptBytes: 8, model: "other" }) },
      { body: { prompt: "f" }, facts: shared },
    ];
    const pageOf = (own: boolean): CallPage | null => {
      const builder = new CallPageBuilder({});
      for (const call of calls) builder.add(own ? { ...call, facts: { ...call.facts } } : call);
      return builder.flush();
    };
    const page = pageOf(false);
    expect(page).toEqual(pageOf(true));
    const read = readFacts(page?.facts ?? "", [null, "other"]);
    expect(read.map(({ promptBytes }) => promptBytes)).toEqual([7, 7, 7, 7, 8, 7]);
    expect(readNames(page?.facts ?? "").map(({ id }) => id)).toEqual([null, null, "named", null, null, null]);
  });
});

describe("calls that are bare", () => {
  it("are so when they are read, with other facts and without, as slots and as copies; those of earlier code are not", () => {
    const calls = [
      facts({ isBare: true }),
      facts(),
      facts({ isBare: true, completions: 2 }),
      facts({ isBare: true, step: 3 }),
    ];
    const builder = new CallPageBuilder({});
    for (const each of calls) builder.add({ body: { prompt: "a" }, facts: each });
    const page = builder.flush()?.facts ?? "";
    const modelIndex = 0;
    expect(readFacts(page, [null])).toEqual(calls.map((each) => ({ ...each, modelIndex })));
    expect(readNames(page)).toEqual([{ id: null }, { id: null }, { id: null }, { id: null, step: 3 }]);
    const copies = new CallPageBuilder({}).copies({ body: { prompt: "a" }, facts: facts({ isBare: true }) }, 2).facts;
    expect(readFacts(copies, [null]).map(({ isBare }) => isBare)).toEqual([true, true]);
    // As earlier code wrote a row, of whatever call.
    expect(readFacts("[[1,1,0,null,2,null,0]]", [null])[0]).not.toHaveProperty("isBare");
  });

  it("take two characters more than others: pages of large batches are kept in memory", () => {
    const rowOf = (fields: Partial<CallFacts>) => new CallPageBuilder({}).kind(facts(fields), 1).length;
    expect(rowOf({ isBare: true }) - rowOf({})).toBe(2);
  });
});

describe("splitting calls into pages", () => {
  it("puts 32 calls into a page, and the next into another", () => {
    const prompts = Array.from({ length: 2 * CALL_PAGE_SLOTS_MAX + 1 }, (_, index) => ({ prompt: `p${index}` }));
    const pages = paged(prompts);
    expect(pages.map(({ firstIndex }) => firstIndex)).toEqual([0, 32, 64]);
    expect(pages.flatMap(linesOf)).toEqual(prompts);
    expect(paged(prompts.slice(0, 32))).toHaveLength(1);
  });

  it("ends a page before its bodies would exceed the bound", () => {
    const overhead = JSON.stringify({ prompt: "" }).length;
    const half = { prompt: "x".repeat(CALL_PAGE_BYTES_MAX / 2 - overhead) };
    expect(paged([half, half]).map(({ firstIndex }) => firstIndex)).toEqual([0]);
    const more = { prompt: `${half.prompt}x` };
    expect(paged([half, more]).map(({ firstIndex }) => firstIndex)).toEqual([0, 1]);
  });

  it("gives a call above the bound a page of its own", () => {
    const large = { prompt: "x".repeat(CALL_PAGE_BYTES_MAX + 1) };
    const pages = paged([{ prompt: "a" }, large, { prompt: "b" }]);
    expect(pages.map(({ firstIndex }) => firstIndex)).toEqual([0, 1, 2]);
    expect(pages.flatMap(linesOf)).toEqual([{ prompt: "a" }, large, { prompt: "b" }]);
  });

  it("makes no page without calls", () => {
    const builder = new CallPageBuilder({});
    expect(builder.flush()).toBeNull();
    builder.add({ body: { prompt: "a" }, facts: facts() });
    expect(builder.flush()).not.toBeNull();
    expect(builder.flush()).toBeNull();
  });

  it("stores one call per line, whatever line breaks its text has", () => {
    const bodies = [{ prompt: "a\nb\r\n\u2028c" }, { messages: [{ role: "user", content: "\n" }] }];
    const [page] = paged(bodies);
    expect(page?.calls.split("\n")).toHaveLength(2);
    expect(linesOf(page)).toEqual(bodies);
  });

  it("counts the characters of all bodies", () => {
    const builder = new CallPageBuilder({});
    paged([{ prompt: "a" }, { prompt: "bc" }], builder);
    expect(builder.totalChars).toBe('{"prompt":"a"}{"prompt":"bc"}'.length);
  });
});

describe("the defaults of a group", () => {
  it("are not repeated in the bodies of its calls", () => {
    const defaults = { system: "s".repeat(1_000), temperature: 0, params: { seed: 1 } };
    const pages = paged(
      [
        { prompt: "a", ...defaults },
        { prompt: "b", ...defaults, temperature: 1 },
      ],
      new CallPageBuilder(defaults),
    );
    expect(pages.flatMap(linesOf)).toEqual([{ prompt: "a" }, { prompt: "b", temperature: 1 }]);
  });

  it("are left out of a body only where it has the same value", () => {
    const builder = new CallPageBuilder({ system: "s" });
    expect(linesOf(paged([{ prompt: "a", system: "t", params: { seed: 1 } }], builder)[0])).toEqual([
      { prompt: "a", system: "t", params: { seed: 1 } },
    ]);
  });

  it("do not change the caller's bodies", () => {
    const body = { prompt: "a", system: "s" };
    paged([body], new CallPageBuilder({ system: "s" }));
    expect(body).toEqual({ prompt: "a", system: "s" });
  });
});

describe("the facts of a page", () => {
  it("are read as they were written, each with the index of its model in the group's list", () => {
    const builder = new CallPageBuilder({});
    const given = [
      facts({ promptBytes: 7, messageCount: 3, mediaParts: 2, model: "a", maxTokens: 9, priority: 4, timeoutMs: 500 }),
      facts({ model: null, priority: 0 }),
      facts({ model: "b" }),
      facts({ model: "a" }),
    ];
    for (const each of given) builder.add({ body: { prompt: "p" }, facts: each });
    const page = builder.flush();
    expect(builder.models).toEqual(["a", null, "b"]);
    expect(readFacts(page?.facts ?? "", builder.models)).toEqual([
      { ...given[0], modelIndex: 0 },
      { ...given[1], modelIndex: 1 },
      { ...given[2], modelIndex: 2 },
      { ...given[3], modelIndex: 0 },
    ]);
  });

  it("share one list of models across pages", () => {
    const builder = new CallPageBuilder({});
    const first = Array.from({ length: 33 }, () =>
      builder.add({ body: { prompt: "p" }, facts: facts({ model: "a" }) }),
    );
    builder.add({ body: { prompt: "p" }, facts: facts({ model: "b" }) });
    const last = builder.flush();
    expect(first.filter((page) => page !== null)).toHaveLength(1);
    expect(readFacts(last?.facts ?? "", builder.models).map(({ model }) => model)).toEqual(["a", "b"]);
  });
});

describe("a page whose bodies are in R2", () => {
  it("has the place of its first body, which no body is taken for", () => {
    const page = { firstIndex: 64, facts: "[]", calls: '{"prompt":"a"}' };
    const placed = placedPage(page, { object: 12, line: 96 });
    expect(placed).toMatchObject({ firstIndex: 64, facts: "[]" });
    expect(placeOf(placed.calls)).toEqual({ object: 12, line: 96 });
    expect(placeOf(page.calls)).toBeNull();
    expect(placeOf('{"messages":[[1,2]]}')).toBeNull();
  });
});

describe("a page of copies", () => {
  it("has its call once, whatever number of slots it stands for", () => {
    const builder = new CallPageBuilder({ prompt: "a long text" });
    const call = { body: { prompt: "a long text", temperature: 1 }, facts: facts({ promptBytes: 11, model: "m" }) };
    const page = builder.copies(call, 50_000);
    expect(page).toMatchObject({ firstIndex: 0, calls: '{"temperature":1}' });
    expect(page.facts.length).toBeLessThan(100);
    expect([isCopied(page.facts), isCopied(paged([{ prompt: "a" }])[0]?.facts ?? "")]).toEqual([true, false]);
    const read = readFacts(page.facts, builder.models);
    expect(read).toHaveLength(50_000);
    expect(read[49_999]).toMatchObject({ promptBytes: 11, model: "m", modelIndex: 0 });
    expect(new Set(read).size).toBe(1);
  });
});
