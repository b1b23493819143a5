import { describe, expect, it } from "vitest";
import { imageFamilyOf, largestOf } from "../../../../src/run/money/image-tokens.ts";
import { Templates, type TemplateRow } from "../../../../src/run/learned/templates.ts";
import { TEMPLATE_LIFE_MS } from "../../../../src/limits.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { alike, makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const family = imageFamilyOf("claude-opus-4-8");
if (family === null) throw new Error("no family");
const target = makeTarget({
  bounds: { tokensPerByte: 1, mediaTokensMax: null, fixedTokens: 128, learnsTemplate: true, images: family },
});
const image = makeFacts({ mediaParts: 1, images: [{ width: 28, height: 28 }], promptBytes: 40, maxTokens: 20 });
const text = makeFacts({ promptBytes: 40, maxTokens: 20 });
/** By the image's header: a token, and those around it; the bytes, and a message. */
const ALLOWED = 1 + family.framing + 40 + 8;

describe("an image whose header is below the truth", () => {
  const lied = { shape: "chat+images", promptTokens: ALLOWED + 128 + 1_400, byteTokensMax: ALLOWED, textRatio: null };

  it("makes every later image of its model count as the largest of the family", () => {
    const templates = new Templates();
    expect(templates.overheadOf(target, image, 0)?.imageExcessTokens).toBeUndefined();
    templates.learn(target, lied.shape, lied);
    expect(templates.overheadOf(target, image, 0)).toMatchObject({ imageExcessTokens: 1_528 });
    expect(templates.overheadOf(target, text, 0)?.imageExcessTokens).toBeUndefined();
    expect(templates.overheadOf({ ...target, model: "other" }, image, 0)?.imageExcessTokens).toBeUndefined();
  });

  it("does not make texts more expensive", () => {
    const templates = new Templates();
    const before = templates.overheadOf(target, text, 0);
    templates.learn(target, lied.shape, lied);
    expect(templates.overheadOf(target, text, 0)).toEqual(before);
    expect(templates.overheadOf({ ...target, model: "other" }, text, 0)?.settledTokens).toBe(128);
  });

  it("is not believed in a request of another shape either, for it is the image that lies", () => {
    const shapes = [
      {},
      { tools: true },
      { endpoint: "messages" as const },
      { endpoint: "messages" as const, tools: true },
    ];
    for (const shape of ["chat+images", "messages+tools+images"]) {
      const templates = new Templates();
      templates.learn(target, shape, { ...lied, promptTokens: ALLOWED + 1_024 + 900 });
      const seen = shapes.map((fields) => templates.overheadOf(target, { ...image, ...fields }, 0)?.imageExcessTokens);
      expect(seen).toEqual(shapes.map(() => 1_924));
    }
  });

  it("does not make the template of its requests more expensive", () => {
    const templates = new Templates();
    templates.learn(target, "chat", { promptTokens: 60, byteTokensMax: 48, textRatio: null });
    templates.learn(target, lied.shape, lied);
    expect(templates.overheadOf(target, image, 0)).toMatchObject({ settledTokens: 128, cautiousTokens: 128 });
  });

  it("is not suspected where the template explains the bill", () => {
    const templates = new Templates();
    templates.learn(target, "chat+images", { promptTokens: ALLOWED + 100, byteTokensMax: ALLOWED, textRatio: null });
    expect(templates.overheadOf(target, image, 0)?.imageExcessTokens).toBeUndefined();
    templates.learn(target, "chat", { promptTokens: 700, byteTokensMax: 48, textRatio: null });
    templates.learn(target, "chat+images", { promptTokens: ALLOWED + 650, byteTokensMax: ALLOWED, textRatio: null });
    expect(templates.overheadOf(target, image, 0)?.imageExcessTokens).toBeUndefined();
  });

  it("is remembered by the upstream object, and believed by other trees once two have seen it", () => {
    const templates = new Templates(() => [], "run_a");
    templates.learn(target, lied.shape, lied);
    const [row] = templates.takeNews().get(target.upstream) ?? [];
    expect(row).toMatchObject({ shape: "chat+images", excessTokens: 1_528, root: "run_a" });
    const { model, shape, root: _, ...facts } = row as TemplateRow;
    const seenBy = (...roots: string[]) => [
      { ...facts, model, shape, witnesses: roots.map((root) => ({ ...facts, root, seenAtMs: 0 })) },
    ];
    const own = new Templates(() => seenBy("run_a"), "run_a");
    expect(own.overheadOf(target, image, 20_000)?.imageExcessTokens).toBe(1_528);
    const other = new Templates(() => seenBy("run_a"), "run_c");
    expect(other.overheadOf(target, image, 20_000)?.imageExcessTokens).toBeUndefined();
    const third = new Templates(() => seenBy("run_a", "run_b"), "run_c");
    expect(third.overheadOf(target, image, 20_000)?.imageExcessTokens).toBe(1_528);
  });

  it("is believed by other trees no more once two have seen it, each in requests of its own shape", () => {
    const row = (shape: string, root: string) => {
      const facts = { leastTokens: 400, excessTokens: 1_528 };
      return { ...facts, model: target.model, shape, witnesses: [{ ...facts, root, seenAtMs: 0 }] };
    };
    const seenIn = (rows: TemplateRow[], nowMs: number) => {
      const other = new Templates(() => rows, "run_c");
      return other.overheadOf(target, image, nowMs);
    };
    const two = [row("chat+images", "run_a"), row("messages+images", "run_b")];
    expect(seenIn(two, 0)?.imageExcessTokens).toBe(1_528);
    expect(
      seenIn([row("chat+images", "run_a"), row("messages+images", "run_a")], 0)?.imageExcessTokens,
    ).toBeUndefined();
    expect(seenIn(two, TEMPLATE_LIFE_MS)?.imageExcessTokens).toBeUndefined();
    // A text shows nothing of images.
    expect(seenIn([row("chat+images", "run_a"), row("chat", "run_b")], 0)?.imageExcessTokens).toBeUndefined();
    const lender = new Templates(() => two, "run_c");
    lender.overheadOf(target, image, 0);
    const instance = new Templates(() => null);
    instance.adopt(target.upstream, structuredClone(lender.learnedOf(target.upstream)), 0);
    expect(instance.overheadOf(target, image, 0)?.imageExcessTokens).toBe(1_528);
  });

  it("shows beside a long text whose look was believed, and beside a file", () => {
    const bytes = 4_000;
    const long = { ...image, promptBytes: bytes, textTokensMax: 1_000 };
    const withFile = { ...image, fileParts: 1 };
    const bounds = { ...target.bounds, fileTokensMax: 500 };
    for (const [facts, billed] of [
      [long, 1_000 + 8 + 1 + family.framing + 128 + 1_400],
      [withFile, ALLOWED + 500 + 128 + 1_400],
    ] as const) {
      const engine = new TestEngine({ targets: [{ ...target, bounds }], limits: { prompt_tokens: 100_000 }, width: 1 });
      engine.state.templates.learn(target, "chat", { promptTokens: 60, byteTokensMax: 48, textRatio: 0.7 });
      engine.open(alike(2, facts));
      const overruns = [0, 1].map(() => {
        engine.startAll(0);
        const [inFlight] = engine.state.attempts.values();
        if (inFlight === undefined) throw new Error("nothing starts");
        const { attemptId, amounts } = inFlight.lease;
        settle(engine.state, attemptId, success({ promptTokens: billed, completionTokens: 5 }), 10);
        return billed > amounts.prompt_tokens;
      });
      expect(overruns).toEqual([true, false]);
    }
  });

  it("overruns its reservation once: the next call of its model reserves what it was billed", () => {
    const engine = new TestEngine({ targets: [target], limits: { prompt_tokens: 100_000 }, width: 1 });
    engine.open(alike(3, image));
    const billed = largestOf(family) + 48;
    const overruns = [0, 1, 2].map(() => {
      engine.startAll(0);
      const [inFlight] = engine.state.attempts.values();
      if (inFlight === undefined) throw new Error("nothing starts");
      const { attemptId, amounts } = inFlight.lease;
      settle(engine.state, attemptId, success({ promptTokens: billed, completionTokens: 5 }), 10);
      return billed > amounts.prompt_tokens;
    });
    expect(overruns).toEqual([true, false, false]);
    expect(engine.state.ledger.overrun.prompt_tokens).toBeGreaterThan(0);
  });
});
