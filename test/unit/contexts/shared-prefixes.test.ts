import { describe, expect, it } from "vitest";
import type { CallBody, CallFacts, PlacedContext } from "../../../src/call.ts";
import { isLong, SharedPrefixes } from "../../../src/contexts/shared-prefixes.ts";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN } from "../../../src/limits.ts";
import { hashOf } from "../../../src/objects/clients/dedupe-key.ts";

const LONG = "x".repeat(PREFIX_BYTES_MIN);
const FACTS: CallFacts = {
  ...{ model: null, maxTokens: null, priority: 2, timeoutMs: null },
  ...{ promptBytes: 1, messageCount: 1, mediaParts: 0 },
};
const CONTEXT: PlacedContext = { id: "ctx_1", from: 0, to: 60_000, place: "prompt" };

const call = (body: CallBody, facts: Partial<CallFacts> = {}) => ({ body, facts: { ...FACTS, ...facts }, cache: {} });
type Call = ReturnType<typeof call>;

/** The keys of the prefixes of calls of a request with these defaults; undefined = a call has none. */
async function keysOf(defaults: CallBody, calls: readonly Call[], others: CallBody[] = []) {
  const shares = await SharedPrefixes.of(defaults, hashOf, others);
  for (const each of calls) shares.count(each);
  return calls.map((each) => shares.mark(each).facts.shared?.key);
}

it("a system message is long from its bytes on, not its characters", () => {
  expect([isLong(undefined), isLong(LONG.slice(1)), isLong(LONG)]).toEqual([false, false, true]);
  expect([isLong("日".repeat(PREFIX_BYTES_MIN / 3 - 1)), isLong("日".repeat(PREFIX_BYTES_MIN / 3))]).toEqual([
    false,
    true,
  ]);
});

describe("calls share", () => {
  it("a long system message, with as many tokens as it has at least", async () => {
    const shares = await SharedPrefixes.of({ system: LONG }, hashOf);
    const { shared } = shares.markLone(call({ system: LONG, prompt: "a" })).facts;
    expect(shared).toEqual({
      key: expect.stringMatching(/^sys_[0-9a-f]{32}$/),
      tokens: PREFIX_BYTES_MIN / PREFIX_BYTES_PER_TOKEN,
    });
  });

  it("only what at least two have", async () => {
    const [one, two] = [call({ system: LONG, prompt: "a" }), call({ system: LONG, prompt: "b" })];
    expect(await keysOf({ system: LONG }, [one])).toEqual([undefined]);
    const [first, second] = await keysOf({ system: LONG }, [one, two]);
    expect([typeof first, first]).toEqual(["string", second]);
  });

  it("a context with the same system message before it, and no other", async () => {
    const body = { prompt: "a", context: CONTEXT };
    const [plain] = await keysOf({}, [call(body), call(body)]);
    expect(plain).toBe("ctx_1:0-60000");
    const system = { ...body, system: "Be brief." };
    const [brief] = await keysOf({ system: "Be brief." }, [
      call(system),
      call(system),
      call({ ...system, system: "No." }),
    ]);
    expect(brief).toMatch(/^ctx_1:0-60000:[0-9a-f]{32}$/);
    expect(await keysOf({ system: "Be brief." }, [call(system), call({ ...system, system: "No." })])).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("a context in the system message, whatever follows it there", async () => {
    const context = { ...CONTEXT, place: "system" as const };
    const own = (system: string) => call({ prompt: "a", context, system });
    const calls = [own("One."), own("Two.")];
    const both = ["ctx_1:0-60000:system", "ctx_1:0-60000:system"];
    expect(await keysOf({}, calls)).toEqual(both);
    const bodies = calls.map(({ body }) => body);
    expect(await keysOf({}, calls, bodies)).toEqual(both);
  });

  it("what tasks of their own options have in common", async () => {
    const [a, b] = [call({ system: LONG, prompt: "a" }), call({ system: `${LONG}!`, prompt: "b" })];
    const calls = [a, b, call({ system: LONG, prompt: "c" })];
    const [first, other, last] = await keysOf(
      {},
      calls,
      calls.map(({ body }) => body),
    );
    expect([first === last, other]).toEqual([true, undefined]);
  });

  it("nothing with other tools, another schema, marks of their own, or a cache that is off", async () => {
    const defaults = { system: LONG };
    const ordinary = call({ ...defaults, prompt: "a" });
    const different: Call[] = [
      call({ ...defaults, prompt: "b", params: { tools: [] } }),
      call({ ...defaults, prompt: "b", schema: { type: "object" } }),
      call({ ...defaults, prompt: "b" }, { cacheTtl: "5m" }),
    ];
    for (const each of different) expect(await keysOf(defaults, [ordinary, each])).toEqual([undefined, undefined]);
    const { cache: _, ...off } = call({ ...defaults, prompt: "c" });
    const shares = await SharedPrefixes.of(defaults, hashOf);
    expect(shares.markLone(off).facts.shared).toBeUndefined();
    const parameter = call({ ...defaults, prompt: "b", params: { top_p: 0.5 } });
    const [first, second] = await keysOf(defaults, [ordinary, parameter]);
    expect([typeof first, first]).toEqual(["string", second]);
  });
});
