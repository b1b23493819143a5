/** Images of hostile requests, and what an upstream that counts them sees in each. */
import { FAMILIES, RELATIVES, type Bills } from "../../test/support/image-billing.ts";
import { dataUrl, fileOf, HOSTILE, NO_IMAGES, png, REAL_SIZES, type Size } from "../../test/support/images.ts";
import { member, textOf, type KeyPolicy, type Value } from "./lenient-json.ts";
import type { Random } from "./random.ts";

/** Every file that is sent, with the size that the upstream's decoder finds. */
const SEEN = new Map<string, Size>();

const remember = (url: string, size: Size): string => {
  SEEN.set(dataOf(url), size);
  return url;
};

/** The base64 of a URL. */
function dataOf(url: string): string {
  return url.slice(url.indexOf(",") + 1);
}

const REAL = REAL_SIZES.map((size, turn) => remember(fileOf(size, turn % 5 === 1 ? 0 : turn), size));
const BENT = HOSTILE.map(({ type, data, seen }) => remember(dataUrl(type, data), seen));
const SHAPES: readonly Size[] = [
  [1, 1],
  [1, 65_535],
  [65_535, 1],
  [30_000, 30_000],
];
const EXTREME = SHAPES.map((size) => remember(dataUrl("png", png(size)), size));
const REMOTE = ["https://pictures.example/a.png", "file-1", "//x", "data:image/png;utf8,x"];
const OTHER = NO_IMAGES.map(({ url }) => url);
/** A header that no reader can doubt, and a decoder that finds something else. */
export const LIE = remember(dataUrl("png", png([3, 3])), [8_000, 8_000]);

/** An image as small as it says. */
export const TINY = remember(dataUrl("png", png([30, 30])), [30, 30]);

/** A URL of an image. `lies`: whether it may be the one that cannot be seen through. */
export function pictureIn(random: Random, lies: boolean): string {
  if (lies && random.chance(0.3)) return LIE;
  return random.pick(random.pick([REAL, REAL, BENT, EXTREME, REMOTE, OTHER]));
}

/** The same as Anthropic's source. */
export function sourceOf(url: string): unknown {
  if (!url.startsWith("data:")) return { type: "url", url };
  return { type: "base64", media_type: url.slice("data:".length, url.indexOf(";")), data: dataOf(url) };
}

export const DETAILS: readonly { detail?: unknown }[] = [
  {},
  ...["auto", "low", "high", "original", "LOW", null].map((detail) => ({ detail })),
];

/** By the name of a personality. */
export function billsOf(name: string): Bills {
  const bills = [...FAMILIES, ...RELATIVES].find((each) => each.name === name);
  if (bills === undefined) throw new Error(`no family ${name}`);
  return bills;
}

const GIANTS: readonly Size[] = [
  [9_000, 9_000],
  [9_000, 3_375],
  [65_535, 1],
];

/** The largest image in a detail. */
function largestIn(bills: Bills, detail: string): number {
  if (detail === "auto" || detail === "original") return bills.largest;
  return Math.min(bills.largest, Math.max(...GIANTS.map((size) => bills.tokens(size, detail))));
}

/** Tokens of the image of a part; null = it is none, but a document. */
export function pictureTokens(bills: Bills, part: Value, keys: KeyPolicy): number | null {
  const at = (value: Value | undefined, name: string) => (value === undefined ? undefined : member(value, name, keys));
  const image = at(part, "image_url");
  const source = at(part, "source");
  const data = textOf(at(source, "data"));
  const inSource = data === null ? null : `data:${textOf(at(source, "media_type")) ?? ""};base64,${data}`;
  const url = textOf(image) ?? textOf(at(image, "url")) ?? inSource;
  if (url !== null && OTHER.includes(url)) return null;
  const size = url === null ? undefined : SEEN.get(dataOf(url));
  const details = [at(part, "detail"), at(image, "detail")].map(textOf).filter((detail) => detail !== null);
  const [detail = "auto"] = details;
  const isKnown = details.length < 2 && ["auto", "low", "high", "original"].includes(detail);
  const possible = isKnown ? [detail] : ["auto", "low", "high", "original"];
  if (size === undefined || (url !== null && !url.startsWith("data:"))) {
    return Math.max(...possible.map((each) => largestIn(bills, each)));
  }
  return Math.max(...possible.map((each) => Math.min(bills.largest, bills.tokens(size, each))));
}
