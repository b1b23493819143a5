import { describe, expect, it } from "vitest";
import { withLook } from "../../../../src/run/money/text-scale.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { Templates } from "../../../../src/run/learned/templates.ts";
import { TEXT_MODELS_MAX } from "../../../../src/limits.ts";
import { alike, makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const target = makeTarget();
const learning = { ...target, bounds: { ...target.bounds, learnsTemplate: true } };
/** A bill that shows nothing but a text ratio. */
const bill = (textRatio: number | null) => ({ promptTokens: 1_500, byteTokensMax: null, textRatio });
const facts = { model: target.model, leastTokens: 9, excessTokens: 0 };

describe("the text ratio of a model", () => {
  it("is unknown before the first answer, and then no bound is tightened", () => {
    const templates = new Templates();
    expect(templates.textRatioOf(target)).toBeUndefined();
    expect(withLook(target.bounds, templates.textRatioOf(target))).toEqual(target.bounds);
  });

  it.each([
    ["does not learn templates", target],
    ["learns templates", learning],
  ])("is the largest of its answers, at an upstream that %s", (_, { bounds }) => {
    const templates = new Templates();
    const own = { ...target, bounds };
    templates.learn(own, "chat", bill(0.75));
    expect(withLook(bounds, templates.textRatioOf(own)).believesLook).toBe(true);
    expect(templates.textRatioOf({ ...own, model: "other" })).toBeUndefined();
    expect(templates.textRatioOf({ ...own, upstream: "other" })).toBeUndefined();
    templates.learn(own, "chat", bill(1.5));
    templates.learn(own, "chat+tools", bill(0.75));
    expect(templates.textRatioOf(own)).toBe(1.5);
    expect(withLook(bounds, 1.5).believesLook).toBeUndefined();
  });

  it("is the largest that this run and others have seen", () => {
    const templates = new Templates();
    templates.read(target.upstream, [{ ...facts, shape: "chat", textRatio: 0.7 }], 0);
    templates.learn(learning, "chat", bill(0.75));
    expect(templates.textRatioOf(target)).toBe(0.75);
    templates.read(target.upstream, [{ ...facts, shape: "chat", textRatio: 1.2 }], 0);
    templates.learn(learning, "chat", bill(0.8));
    expect(templates.textRatioOf(target)).toBe(1.2);
  });

  it("is reported with its template, and not from an upstream whose template is not learned", () => {
    const templates = new Templates();
    const sample = { promptTokens: 1_500, byteTokensMax: 1_600, textRatio: 0.75 };
    templates.learn(target, "chat", sample);
    expect(templates.takeNews().size).toBe(0);
    templates.learn(learning, "chat", sample);
    expect(templates.takeNews().get(target.upstream)).toMatchObject([{ model: target.model, textRatio: 0.75 }]);
  });

  it("is shared by all shapes of a model's requests, and read from what other runs have seen", () => {
    const templates = new Templates();
    templates.read(
      target.upstream,
      [
        { ...facts, shape: "chat", textRatio: 0.7 },
        { ...facts, shape: "chat+tools" },
      ],
      0,
    );
    templates.read(target.upstream, [{ ...facts, shape: "responses", textRatio: 1.1 }], 0);
    expect(templates.textRatioOf(target)).toBe(1.1);
    expect(templates.textRatioOf({ ...target, model: "other" })).toBeUndefined();
  });

  it("awaits what other runs have seen until it was read, or cannot be", () => {
    const templates = new Templates(() => null);
    const call = makeFacts({});
    expect(templates.overheadOf(learning, call, 0)).toMatchObject({ awaitsFacts: true });
    expect(templates.takeWanted()).toEqual([target.upstream]);
    expect(templates.overheadOf(learning, call, 1)).toMatchObject({ awaitsFacts: true });
    templates.read(target.upstream, [], 2);
    expect(templates.overheadOf(learning, call, 2)?.awaitsFacts).toBeUndefined();
    // A later read keeps what is known meanwhile.
    expect(templates.overheadOf(learning, call, 1e9)?.awaitsFacts).toBeUndefined();
  });

  it("is not changed by an answer that shows nothing of it", () => {
    const templates = new Templates();
    templates.learn(target, "chat", bill(null));
    expect(templates.textRatioOf(target)).toBeUndefined();
  });

  it("is remembered for TEXT_MODELS_MAX models of an upstream, and those stay", () => {
    const templates = new Templates();
    const of = (model: number) => ({ ...target, model: `m${model}` });
    for (let model = 0; model <= TEXT_MODELS_MAX; model++) templates.learn(of(model), "chat", bill(0.75));
    templates.learn(of(0), "chat", bill(2));
    const known = [0, TEXT_MODELS_MAX - 1, TEXT_MODELS_MAX].map((model) => templates.textRatioOf(of(model)));
    expect(known).toEqual([2, 0.75, undefined]);
  });
});

describe("a run of long English prompts", () => {
  const prompt = { promptBytes: 30_000, textTokensMax: 10_000, maxTokens: 10 };
  const reserved = (engine: TestEngine) => engine.state.ledger.reserved.prompt_tokens;

  it("reserves the first by its bytes, and the others by the look once an answer bore it out", () => {
    const engine = new TestEngine({ limits: { prompt_tokens: 1_000_000 }, width: 1 });
    engine.open(alike(3, prompt));
    engine.startAll(0);
    expect(reserved(engine)).toBe(30_000 + 8);
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", success({ promptTokens: 7_000 }), 10);
    engine.startAll(10);
    expect(reserved(engine)).toBe(10_000 + 8);
  });

  it("reserves by bytes again as soon as an answer costs that much", () => {
    const engine = new TestEngine({ limits: { prompt_tokens: 1_000_000 }, width: 1 });
    engine.open(alike(3, prompt));
    for (const [promptTokens, next] of [
      [7_000, 10_008],
      [29_000, 30_008],
    ] as const) {
      engine.startAll(0);
      settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", success({ promptTokens }), 10);
      engine.startAll(10);
      expect(reserved(engine)).toBe(next);
    }
  });
});
