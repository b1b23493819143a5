/** An option of a call reaches its upstream request, or dispatch, on every way in. Walks the definition, so it holds for new options. */
import { describe, expect, it } from "vitest";
import { GATES, type CallBody, type CallFacts, type DispatchOptions } from "../../../src/call.ts";
import { batchItem, parseBatch } from "../../../src/contract/batch.ts";
import { parseDialectQuery } from "../../../src/contract/dialects/dialects.ts";
import { callSettingsFields, type CallSettingsInput } from "../../../src/contract/call-options.ts";
import { parseQuery } from "../../../src/contract/query.ts";
import { labelsIn, LABEL_NAMES, labelsOf, type CallLabels } from "../../../src/labels.ts";
import { contentHash, dedupeKeyOf } from "../../../src/objects/clients/dedupe-key.ts";
import { CallPageBuilder, readCall, readFacts } from "../../../src/run/queue/call-page.ts";
import { buildAnthropicRequest } from "../../../src/providers/kinds/anthropic/request.ts";
import { buildRequest } from "../../../src/providers/kinds/openai/request.ts";
import { makeAnthropic, makeLease, makeUpstream } from "../providers/make.ts";

type OptionName = keyof CallSettingsInput;

/** A value of an option other than its default, and the fact that it must become; null = a part of the body. */
type Sample<Name extends OptionName> = {
  value: CallSettingsInput[Name];
  fact: Partial<DispatchOptions> | null;
  /** Options without which it means nothing. */
  beside?: CallSettingsInput;
  /** Labels without which it says nothing. */
  besideLabel?: CallLabels;
};
const SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false };
const SAMPLES: { [Name in OptionName]-?: Sample<Name> } = {
  model: { value: "up/large", fact: { model: "up/large" } },
  max_tokens: { value: 77, fact: { maxTokens: 77 } },
  priority: { value: "critical", fact: { priority: 4 } },
  timeout_ms: { value: 1_234, fact: { timeoutMs: 1_234 } },
  reserve: { value: "worst", fact: { reserve: "worst" } },
  system: { value: "Answer in Latin.", fact: null },
  temperature: { value: 0.25, fact: null },
  params: { value: { top_p: 0.5 }, fact: null },
  schema: { value: SCHEMA, fact: null },
  cache: { value: "off", fact: null },
  context: { value: `ctx_${"0".repeat(32)}`, fact: null },
  service_tier: { value: "flex", fact: { wantedTier: "flex" } },
  schema_retries: { value: 3, fact: { schemaRetries: 3 }, beside: { schema: SCHEMA } },
  models: { value: ["up/a", "up/b"], fact: { model: "up/a", cascade: { models: ["up/b"], on: GATES } } },
  escalate_on: {
    value: ["empty", { json: "$.sure[0] < 0.5" }],
    fact: {
      cascade: { models: ["up/b"], on: ["empty"], json: { key: "sure.0", operator: "<", value: 0.5 } },
    },
    beside: { models: ["up/a", "up/b"] },
  },
  samples: {
    value: { min: 3, max: 5, agree: 0.6, by: "exact" },
    fact: { sampling: { min: 3, max: 5, agree: 0.6, comparison: { by: "exact" } } },
  },
  include: { value: ["message"], fact: null },
  tools: { value: ["lookup"], fact: { toolUse: { tools: ["lookup"], maxTurns: 8 } } },
  max_turns: {
    value: 3,
    fact: { toolUse: { tools: ["lookup"], maxTurns: 3 } },
    beside: { tools: ["lookup"] },
  },
  hedge: { value: { after: 900, max_extra: 0.1 }, fact: { hedge: { after: 900, maxExtra: 0.1 } } },
  step: { value: 3, fact: { step: 3 } },
  steps: { value: 20, fact: { steps: 20 }, besideLabel: { step: 3 } },
};
/** Parts of the body that are no part of the request. */
const NOT_SENT: readonly OptionName[] = ["context", "cache", "include", "tools", "max_turns"];

/** Options that exclude others. */
const ALTERNATIVES: readonly OptionName[] = ["models", "escalate_on"];

type Call = { body: CallBody; facts: CallFacts };

function parsed<T>(result: { ok: true; value: T } | { ok: false; reason: unknown }): T {
  if (!result.ok) throw new Error(JSON.stringify(result.reason));
  return result.value;
}

/** A batch's only call, as its lane gets it: cut into a page, stored as text, read again. */
function storedCall(request: unknown): Call {
  const { calls, defaults } = parsed(parseBatch(request));
  const builder = new CallPageBuilder(defaults);
  for (const call of calls) builder.add(call);
  const page = builder.flush();
  const [facts] = readFacts(page?.facts ?? "[]", builder.models);
  if (page === null || facts === undefined) throw new Error("the batch has no page");
  const { modelIndex, laterModels = [], ...read } = facts;
  expect(laterModels.map((index) => builder.models[index])).toEqual(read.cascade?.models ?? []);
  expect(builder.models[modelIndex]).toBe(read.model);
  return { body: readCall(page.calls, JSON.stringify(defaults)), facts: read };
}

const WAYS: Record<string, (options: object) => Call> = {
  "/query": (options) => parsed(parseQuery({ prompt: "hi", ...options })),
  "/llm_query": (options) => parsed(parseDialectQuery({ prompt: "hi", ...options })).call,
  "an item of /batch": (options) => storedCall({ items: [{ prompt: "hi", ...options }] }),
  "the defaults of prompts": (options) => storedCall({ prompts: ["hi"], ...options }),
  "the defaults of items": (options) => storedCall({ items: [{ prompt: "hi" }], ...options }),
};

const lease = makeLease({ capTokens: null });

function requestsOf(body: CallBody): string[] {
  const anthropic = buildAnthropicRequest(makeAnthropic(), lease, body);
  const openai = buildRequest(makeUpstream(), lease, body);
  return [openai, anthropic].map((built) => (built.ok ? String(built.request.body) : "refused"));
}

const NAMES = Object.keys(callSettingsFields()).filter((name): name is OptionName => name in SAMPLES);

describe("each option of a call", () => {
  it("has a sample here", () => {
    expect(NAMES).toEqual(Object.keys(callSettingsFields()));
    expect(Object.keys(batchItem().shape)).toEqual(expect.arrayContaining(NAMES));
  });

  // A context is found before its call is stored: test/contract/contexts.test.ts.
  describe.each(NAMES.filter((name) => name !== "context" && name !== "cache"))("%s", (name) => {
    const { value, fact, beside } = SAMPLES[name];

    it.each(Object.keys(WAYS))("survives %s", (way) => {
      const callOf = WAYS[way];
      if (callOf === undefined) throw new Error(way);
      const plain = callOf({ ...beside });
      const call = callOf({ ...beside, [name]: value });
      if (fact === null) expect(call.body).toMatchObject({ [name]: value });
      else {
        expect(call.facts).toMatchObject(fact);
        expect(plain.facts).not.toMatchObject(fact);
      }
    });

    it("is the same on /query as in a batch", () => {
      const calls = Object.values(WAYS).map((callOf) => callOf({ ...beside, [name]: value }));
      for (const { body, facts } of calls)
        expect({ body, facts }).toEqual({ body: calls[0]?.body, facts: calls[0]?.facts });
    });
  });

  it.each(NAMES.filter((name) => SAMPLES[name].fact === null && !NOT_SENT.includes(name)))(
    "%s changes the request to every kind of upstream",
    (name) => {
      const plain = requestsOf({ prompt: "hi" });
      const sent = requestsOf({ prompt: "hi", ...{ [name]: SAMPLES[name].value } });
      expect(sent).not.toContain("refused");
      for (const [index, request] of sent.entries()) expect(request).not.toBe(plain[index]);
    },
  );
});

describe("an option of an item", () => {
  it("wins over the default of its batch", () => {
    const defaults = { model: "a", max_tokens: 1, priority: "low", timeout_ms: 5, system: "s", temperature: 1 };
    const together = NAMES.filter((name) => !ALTERNATIVES.includes(name));
    const options = Object.fromEntries(together.map((name) => [name, SAMPLES[name].value]));
    expect(storedCall({ items: [{ prompt: "hi", ...options }], ...defaults })).toEqual(
      storedCall({ items: [{ prompt: "hi", ...options }] }),
    );
  });
});

describe("models", () => {
  const cascadeOf = (item: object, defaults: object = {}) =>
    storedCall({ items: [{ prompt: "hi", ...item }], ...defaults }).facts;

  it("of a batch yield to the model of an item, and keep their gates for the models of an item", () => {
    const defaults = { models: ["a", "b"], escalate_on: ["empty"] };
    expect(cascadeOf({}, defaults)).toMatchObject({ model: "a", cascade: { models: ["b"], on: ["empty"] } });
    expect(cascadeOf({ model: "c" }, defaults)).toMatchObject({ model: "c" });
    expect(cascadeOf({ model: "c" }, defaults).cascade).toBeUndefined();
    const own = cascadeOf({ models: ["d", "e"] }, defaults);
    expect(own).toMatchObject({ model: "d", cascade: { models: ["e"], on: ["empty"] } });
  });

  it.each([
    ["beside model", { model: "a", models: ["a", "b"] }, "models"],
    ["beside samples", { models: ["a", "b"], samples: {} }, "samples"],
    ["that are one", { models: ["a"] }, "models"],
    ["that are six", { models: ["a", "b", "c", "d", "e", "f"] }, "models"],
    ["missing for escalate_on", { escalate_on: ["empty"] }, "escalate_on"],
    [
      "with a condition without a path",
      { models: ["a", "b"], escalate_on: { json: "confidence < 0.7" } },
      "escalate_on",
    ],
    ["with a condition that orders texts", { models: ["a", "b"], escalate_on: { json: '$.a < "b"' } }, "escalate_on"],
    [
      "with two conditions",
      { models: ["a", "b"], escalate_on: [{ json: "$.a < 1" }, { json: "$.b < 1" }] },
      "escalate_on",
    ],
    ["with fewer samples than needed", { samples: { min: 5, max: 4 } }, "samples.max"],
    ["with a key without json_key", { samples: { key: "a" } }, "samples.key"],
  ])("%s are refused by their field", (_, options, param) => {
    expect(parseQuery({ prompt: "hi", ...options })).toMatchObject({ ok: false, reason: { param } });
  });
});

/** Options in which calls may differ that share an answer in flight: see docs/query.md. */
const EQUAL_IN_FLIGHT: ReadonlySet<OptionName> = new Set<OptionName>(["priority", "timeout_ms", ...LABEL_NAMES]);

/** Options in which calls may differ that get the same recorded answer: of those that name another model, only if that is the same route. */
const EQUAL_RECORDED: ReadonlySet<OptionName> = new Set<OptionName>([
  ...EQUAL_IN_FLIGHT,
  ...(["model", "models", "escalate_on", "reserve", "schema_retries", "samples", "hedge"] as const),
  // The tools that are offered become a part of the body.
  ...(["tools", "max_turns"] as const),
]);

// A context and how it is cached are found before the call is compared.
describe.each(NAMES.filter((name) => name !== "context" && name !== "cache"))("two calls but for %s", (name) => {
  const { value, beside, besideLabel } = SAMPLES[name];
  const [plain, other] = [{ ...beside }, { ...beside, ...besideLabel, [name]: value }].map((options) =>
    parsed(parseQuery({ prompt: "hi", ...options })),
  );
  if (plain === undefined || other === undefined) throw new Error(name);

  it(`${EQUAL_IN_FLIGHT.has(name) ? "share" : "do not share"} an answer in flight`, async () => {
    const keys = [await dedupeKeyOf(plain.body, plain.facts), await dedupeKeyOf(other.body, other.facts)];
    expect(keys[0] === keys[1]).toBe(EQUAL_IN_FLIGHT.has(name));
  });

  it(`${EQUAL_RECORDED.has(name) ? "have" : "do not have"} the same content for recorded answers`, async () => {
    const hashes = [await contentHash(plain.body, plain.facts), await contentHash(other.body, other.facts)];
    expect(hashes[0] === hashes[1]).toBe(EQUAL_RECORDED.has(name));
  });
});

describe.each(LABEL_NAMES)("the label %s", (name) => {
  const { value, besideLabel } = SAMPLES[name];
  const labels = { ...besideLabel, [name]: value };

  it("is in no request to an upstream", () => {
    expect(requestsOf(storedCall({ items: [{ prompt: "hi", ...labels }] }).body)).toEqual(requestsOf({ prompt: "hi" }));
  });

  it("is read of the facts of a call, and of a line of the log, as its client sent it", () => {
    const { facts } = storedCall({ items: [{ prompt: "hi", ...labels }] });
    expect(labelsOf(facts)).toEqual(labels);
    expect(labelsIn({ index: 0, ...labels })).toEqual(labels);
  });
});

describe("a step", () => {
  it("of an item is counted by the steps of its batch", () => {
    const { facts } = storedCall({ items: [{ prompt: "hi", step: 3 }], steps: 3, step: 1 });
    expect(facts).toMatchObject({ step: 3, steps: 3 });
  });

  it.each([
    ["that is 0", { step: 0 }, "step"],
    ["that is above 10,000", { step: 10_001 }, "step"],
    ["that is no integer", { step: 1.5 }, "step"],
    ["that is above its steps", { step: 4, steps: 3 }, "step"],
    ["of 10,001", { step: 1, steps: 10_001 }, "steps"],
  ])("%s is refused by its field", (_, options, param) => {
    expect(parseQuery({ prompt: "hi", ...options })).toMatchObject({ ok: false, reason: { param } });
  });

  it("of an item that is above the steps of its batch is refused by the item", () => {
    const refused = parseBatch({ items: [{ prompt: "a" }, { prompt: "b", step: 4 }], steps: 3 });
    expect(refused).toMatchObject({ ok: false, reason: { param: "items[1].step" } });
  });
});

describe("a part of the body that this version does not know", () => {
  it("survives storage, shared or not", () => {
    const shared = { system: "s", made_up: { deep: [1] } };
    const builder = new CallPageBuilder(shared);
    const facts = storedCall({ prompts: ["hi"] }).facts;
    builder.add({ body: { prompt: "a", ...shared }, facts });
    builder.add({ body: { prompt: "b", ...{ made_up: 2 } }, facts });
    const lines = builder.flush()?.calls.split("\n") ?? [];
    expect(lines[0]).toBe('{"prompt":"a"}');
    expect(lines.map((line) => readCall(line, JSON.stringify(shared)))).toEqual([
      { prompt: "a", system: "s", made_up: { deep: [1] } },
      { prompt: "b", system: "s", made_up: 2 },
    ]);
  });
});
