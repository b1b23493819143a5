import { describe, expect, it } from "vitest";
import { IMAGE_FAMILIES, IMAGE_FAMILIES_DATE } from "../../../../src/run/money/image-families.ts";
import { imageFamilyOf, imageTokensMax, largestOf, tokensMax } from "../../../../src/run/money/image-tokens.ts";
import { readRequest } from "../../../../src/providers/formats/request/read.ts";
import { mediaTokensMax } from "../../../../src/run/money/estimate.ts";
import { FAMILIES, RELATIVES, tiles, type Bills } from "../../../support/image-billing.ts";
import { fileOf, REAL_SIZES, type Size } from "../../../support/images.ts";

const familyOf = (model: string) => {
  const family = imageFamilyOf(model);
  if (family === null) throw new Error(`${model} has no family`);
  return family;
};
const bound = ({ model }: Pick<Bills, "model">, [width, height]: Size, detail?: "low" | "high" | "original"): number =>
  tokensMax(familyOf(model), { width, height, ...(detail === undefined ? {} : { detail }) });

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

/** Shapes that no camera makes. */
const ODD_SIZES: readonly Size[] = [
  ...([
    [1, 1],
    [1, 65_535],
    [65_535, 1],
    [2, 3_000],
    [3_000, 2],
    [27, 27],
    [28, 28],
    [29, 29],
    [31, 33],
  ] as const),
  ...([
    [32, 32],
    [384, 384],
    [385, 384],
    [384, 5_000],
    [511, 513],
    [767, 769],
    [768, 768],
    [769, 2_049],
  ] as const),
  ...([
    [100, 1_000],
    [1_568, 1_568],
    [1_569, 785],
    [2_576, 2_576],
    [8_000, 8_000],
    [20_000, 20_000],
  ] as const),
  ...([
    [65_535, 65_535],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [10, 30],
    [13, 14],
    [42, 42],
    [1_024, 1_025],
  ] as const),
];

describe("the bound of an image", () => {
  it.each(FAMILIES)(
    "is at least what is billed for 60 real images of $name, and at the median at most 1.3 times that",
    (family) => {
      const ratios = REAL_SIZES.map((size, turn) => {
        const body = { model: family.model, messages: [{ role: "user", content: [imagePart(fileOf(size, turn))] }] };
        const read = readRequest("chat", new TextEncoder().encode(JSON.stringify(body)));
        if (!read.ok) throw new Error("the request is refused");
        const { images, mediaParts, promptBytes, messageCount } = read.value;
        const bounds = { tokensPerByte: 1, mediaTokensMax: null, images: familyOf(family.model) };
        const reserved = mediaTokensMax({ images, mediaParts, promptBytes, messageCount }, bounds) ?? 0;
        const billed = family.tokens(size);
        expect(reserved, `${family.name} ${String(size)}`).toBeGreaterThanOrEqual(billed);
        return reserved / billed;
      });
      expect(ratios.length).toBe(60);
      console.info(
        `${family.name}: bound ÷ bill at the median ${median(ratios).toFixed(3)}, at most ${Math.max(...ratios).toFixed(2)}`,
      );
      expect(median(ratios)).toBeLessThanOrEqual(1.3);
    },
  );

  it.each([...FAMILIES, ...RELATIVES])(
    "is at least what is billed for an odd image of $name, in every detail",
    (family) => {
      for (const size of [...ODD_SIZES, ...REAL_SIZES]) {
        for (const detail of [undefined, "low", "high", "original"] as const) {
          const billed = Math.min(family.largest, family.tokens(size, detail));
          expect(bound(family, size, detail), `${family.name} ${String(size)} ${detail}`).toBeGreaterThanOrEqual(
            billed,
          );
        }
      }
    },
  );

  it("is enough where a provider enlarges small images to the shorter side of its tiles", () => {
    for (const size of REAL_SIZES) {
      const billed = Math.min(tiles([2_048, 768], 85, 170), tiles(size, 85, 170, "high", true));
      expect(bound({ model: "gpt-4o" }, size, "high")).toBeGreaterThanOrEqual(billed);
    }
  });

  it.each([...FAMILIES, ...RELATIVES])(
    "of an image of which nothing is known is the largest of $name",
    ({ model, largest }) => {
      const family = familyOf(model);
      expect(imageTokensMax(2, [], family)).toBe(2 * largestOf(family));
      expect(largestOf(family, "other")).toBeGreaterThanOrEqual(largest);
      expect(tokensMax(family, { width: 0, height: 0 })).toBe(largestOf(family));
    },
  );

  it("respects the detail where it makes images cheaper, of any size, and no detail that it does not know", () => {
    const family = familyOf("gpt-4o");
    expect(tokensMax(family, { width: 0, height: 0, detail: "low" })).toBe(85 + 8);
    expect(tokensMax(family, { width: 4_000, height: 4_000, detail: "low" })).toBe(85 + 8);
    const other = tokensMax(familyOf("gpt-5.4"), { width: 9_000, height: 9_000, detail: "other" });
    expect(other).toBe(largestOf(familyOf("gpt-5.4"), "original"));
  });

  it("counts images of one size together, and those that are not listed as the largest", () => {
    const family = familyOf("claude-opus-4-8");
    const image = { width: 280, height: 280 };
    const one = tokensMax(family, image);
    expect(imageTokensMax(3, [{ ...image, count: 3 }], family)).toBe(3 * one);
    expect(imageTokensMax(4, [{ ...image, count: 3 }], family)).toBe(3 * one + largestOf(family));
    // More are listed than there are: an object of another version may do so.
    expect(imageTokensMax(1, [{ ...image, count: 3 }], family)).toBe(one);
  });

  it("is the largest of the family, and as much more as was billed, once a header was found to lie", () => {
    const family = familyOf("claude-opus-4-8");
    const image = { width: 28, height: 28 };
    expect(imageTokensMax(1, [image], family, 500)).toBe(largestOf(family));
    const each = 9_000 + tokensMax(family, image);
    expect(imageTokensMax(2, [{ ...image, count: 2 }], family, 9_000)).toBe(2 * each);
    expect(imageTokensMax(1, [], family, 9_000)).toBe(largestOf(family) + 9_000);
  });
});

const imagePart = (url: string) => ({ type: "image_url", image_url: { url } });

describe("the family of a model", () => {
  it.each<[string, string | null]>([
    ["gpt-4o", "openai-tiles"],
    ["openai/gpt-4o-mini", "openai-tiles"],
    ["gpt-4.1", "openai-tiles"],
    ["gpt-4.1-mini", "openai-patches"],
    ["gpt-5-nano-2025-08-07", "openai-patches"],
    ["gpt-5.4", "openai-original"],
    ["gpt-6-astra", "openai-original"],
    ["us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic"],
    ["claude-3-5-haiku-latest", "anthropic"],
    ["google/gemini-2.5-pro", "gemini-2"],
    ["gemini-3-pro-preview", "gemini-3"],
    ["Qwen/Qwen3-VL-235B-A22B-Instruct", "qwen-vl"],
    ["mistralai/Pixtral-Large-Instruct-2411", "mistral"],
    ["llama-4-maverick", null],
    ["my-deployment", null],
    ["", null],
  ])("%s: %s", (model, name) => {
    expect(imageFamilyOf(model)?.name ?? null).toBe(name);
  });

  it("of a Claude that the table does not name is the one of the largest images", () => {
    expect(imageFamilyOf("claude-next-9")).toBe(imageFamilyOf("claude-opus-4-7"));
    expect(largestOf(familyOf("claude-sonnet-4-5"))).toBeLessThan(largestOf(familyOf("claude-next-9")));
  });

  it("has a source and a day for every row, none of them newer than the table", () => {
    for (const { source, date, match } of IMAGE_FAMILIES) {
      expect(source).toMatch(/^https:\/\//);
      expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
      expect(date <= IMAGE_FAMILIES_DATE).toBe(true);
      for (const pattern of match) expect(pattern).toBe(pattern.toLowerCase());
    }
    expect(IMAGE_FAMILIES.some(({ date }) => date === IMAGE_FAMILIES_DATE)).toBe(true);
  });
});
