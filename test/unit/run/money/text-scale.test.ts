import { describe, expect, test } from "vitest";
import { promptTokensMax } from "../../../../src/run/money/estimate.ts";
import { isLookBelieved, textRatioOf, textSampleOf } from "../../../../src/run/money/text-scale.ts";
import {
  TEXT_RATIO_MIN,
  TEXT_SAMPLE_DENSITY_MAX,
  TEXT_SAMPLE_TOKENS_MIN,
  TEXT_SCALE_MARGIN,
} from "../../../../src/limits.ts";
import { makeFacts } from "../../../support/engine.ts";

const facts = makeFacts({ promptBytes: 30_000, textTokensMax: 10_000 });

describe("textSampleOf", () => {
  test("is the look's figure, of a prompt that is long enough", () => {
    expect(textSampleOf(facts)).toBe(10_000);
    expect(textSampleOf({ ...facts, textTokensMax: TEXT_SAMPLE_TOKENS_MIN })).toBe(TEXT_SAMPLE_TOKENS_MIN);
    expect(textSampleOf({ ...facts, textTokensMax: TEXT_SAMPLE_TOKENS_MIN - 1 })).toBeNull();
  });

  test.each([
    { mediaParts: 1 },
    { fileParts: 1 },
    { promptTokenIds: 3 },
    { unbounded: [{ field: "messages[1].type", why: "w", spends: ["usd"] as const }] },
  ])("is none of a prompt with %o", (more) => {
    expect(textSampleOf({ ...facts, ...more })).toBeNull();
  });

  test("is none of a dense prompt, whose answer says nothing of words", () => {
    const densest = facts.promptBytes * TEXT_SAMPLE_DENSITY_MAX;
    expect(textSampleOf({ ...facts, textTokensMax: densest })).toBe(densest);
    expect(textSampleOf({ ...facts, textTokensMax: densest + 1 })).toBeNull();
  });

  test("is none of a prompt whose text was not looked at", () => {
    expect(textSampleOf(makeFacts({ promptBytes: 30_000 }))).toBeNull();
  });
});

describe("textRatioOf", () => {
  test("is what was billed over what the look counted", () => {
    expect(textRatioOf(7_500, 10_000)).toBe(0.75);
    expect(textRatioOf(25_000, 10_000)).toBe(2.5);
  });

  test("is none of a bill that no English text can have", () => {
    expect(textRatioOf(10_000 * TEXT_RATIO_MIN, 10_000)).toBe(TEXT_RATIO_MIN);
    expect(textRatioOf(10_000 * TEXT_RATIO_MIN - 1, 10_000)).toBeNull();
    expect(textRatioOf(0, 10_000)).toBeNull();
  });
});

describe("isLookBelieved", () => {
  const reserved = (ratio: number | undefined) => {
    const bounds = { tokensPerByte: 1, mediaTokensMax: null, believesLook: isLookBelieved(ratio) };
    return promptTokensMax({ ...facts, messageCount: 0 }, bounds);
  };

  test("without an answer every byte is reserved", () => {
    expect(reserved(undefined)).toBe(30_000);
  });

  test("the look holds where answers stay below it by the margin", () => {
    expect(reserved(0.5)).toBe(10_000);
    expect(reserved(1 / TEXT_SCALE_MARGIN)).toBe(10_000);
  });

  test("an answer that came nearer than the margin has every byte reserved again", () => {
    expect(reserved(1 / TEXT_SCALE_MARGIN + 0.001)).toBe(30_000);
    expect(reserved(50)).toBe(30_000);
  });

  test("a call whose text was not looked at is reserved by its bytes", () => {
    const bounds = { tokensPerByte: 1, mediaTokensMax: null, believesLook: true };
    expect(promptTokensMax({ promptBytes: 500, messageCount: 0 }, bounds)).toBe(500);
  });
});
