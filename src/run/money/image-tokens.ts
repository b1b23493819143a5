/** The most tokens that a model's provider counts an image as, by the table of its family. */
import type { ImageDetail, ImageFacts } from "../../call.ts";
import { IMAGE_FAMILIES, type ImageFamily, type ImageRule, type PatchBox } from "./image-families.ts";
import { fitsPattern } from "./name-pattern.ts";

/** The family of a model, by the last part of its id: routers put vendors before it. null = its images are not known. */
export function imageFamilyOf(model: string): ImageFamily | null {
  const name = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  return IMAGE_FAMILIES.find(({ match }) => match.some((pattern) => fitsPattern(pattern, name))) ?? null;
}

/**
 * Most tokens of all images of a call. Those that are not listed are of any size.
 * @param excessTokens Tokens that one image was billed above this bound: then no header is believed. 0 = none.
 */
export function imageTokensMax(
  mediaParts: number,
  images: readonly ImageFacts[],
  family: ImageFamily,
  excessTokens = 0,
): number {
  const tokensOf = (image: ImageFacts): number => {
    const tokens = tokensMax(family, image);
    return excessTokens === 0 ? tokens : Math.max(largestOf(family, image.detail), tokens + excessTokens);
  };
  let listed = 0;
  let tokens = 0;
  for (const image of images) {
    const count = Math.min(image.count ?? 1, mediaParts - listed);
    listed += count;
    tokens += count * tokensOf(image);
  }
  return tokens + (mediaParts - listed) * tokensOf(UNMEASURED);
}

const UNMEASURED: ImageFacts = { width: 0, height: 0 };

/** Most tokens of one image. */
export function tokensMax(family: ImageFamily, image: ImageFacts): number {
  if (image.width < 1 || image.height < 1) return largestOf(family, image.detail);
  return Math.min(largestOf(family, image.detail), sizedTokens(family.rule, image) + family.framing);
}

/** Tokens of the largest image that a family takes. */
export function largestOf({ rule, framing }: ImageFamily, detail?: ImageDetail): number {
  return largest(rule, detail) + framing;
}

function largest(rule: ImageRule, detail: ImageDetail | undefined): number {
  switch (rule.by) {
    case "tiles":
      return detail === "low" ? rule.base : rule.base + TILES_MAX * rule.tile;
    case "patches":
      return Math.max(
        ...boxesOf(rule, detail).map(({ patches, edge }) =>
          Math.ceil(Math.min(patches, Math.ceil(edge / rule.side) ** 2) * rule.times),
        ),
      );
    case "flat":
      return isUsual(detail) ? rule.tokens : rule.most;
    case "crops":
      return rule.cropsMax * rule.crop;
    case "grid":
      return rule.tokensMax;
    case "rows":
      return rowTokens(rule, rule.edge, rule.edge);
  }
}

function sizedTokens(rule: ImageRule, { width, height, detail }: ImageFacts): number {
  switch (rule.by) {
    case "tiles":
      return detail === "low" ? rule.base : rule.base + tilesOf(width, height) * rule.tile;
    case "patches":
      return Math.max(
        ...boxesOf(rule, detail).map((box) => Math.ceil(patchesIn(rule, box, width, height) * rule.times)),
      );
    case "flat":
      return largest(rule, detail);
    case "crops":
      return cropsOf(rule, width, height) * rule.crop;
    case "grid":
      return gridTokens(rule, width, height);
    case "rows":
      // An image may be turned before it is counted.
      return Math.max(rowTokens(rule, width, height), rowTokens(rule, height, width));
  }
}

/** A detail that asks for no more than usual. */
function isUsual(detail: ImageDetail | undefined): boolean {
  return detail === undefined || detail === "low" || detail === "high";
}

const TILE = 512;
const SHORT_SIDE = 768;
const LONG_SIDE = 2_048;
/** Two beside four. */
const TILES_MAX = Math.ceil(SHORT_SIDE / TILE) * Math.ceil(LONG_SIDE / TILE);

/**
 * Tiles of an image whose shorter side has 768 pixels. The source does not say whether a smaller image is enlarged to that, so it
 * counts as if it were.
 */
function tilesOf(width: number, height: number): number {
  const ratio = Math.max(width, height) / Math.min(width, height);
  return Math.ceil(SHORT_SIDE / TILE) * Math.ceil(Math.min(LONG_SIDE, SHORT_SIDE * ratio) / TILE);
}

type PatchRule = Extract<ImageRule, { by: "patches" }>;

/** The boxes that an image of a detail may be shrunk to: several where it is not known which. */
function boxesOf({ side, low, high, original = high, usual }: PatchRule, detail: ImageDetail | undefined): PatchBox[] {
  switch (detail) {
    case undefined:
      return [usual === "original" ? original : high];
    case "low":
      return low === undefined ? [high] : [{ patches: low, edge: Math.sqrt(low) * side }];
    case "high":
      return [high];
    case "original":
      return [original];
    case "other":
      return [high, original];
  }
}

function patchesIn({ side, pixelsPerToken }: PatchRule, { patches, edge }: PatchBox, width: number, height: number) {
  const scale = Math.min(1, edge / Math.max(width, height));
  // Whether pixels are rounded up or down is not known.
  const [wide, high] = [pixels(width * scale), pixels(height * scale)];
  const byPatch = Math.ceil(wide / side) * Math.ceil(high / side);
  const byArea = pixelsPerToken === undefined ? 0 : Math.ceil((wide * high) / pixelsPerToken);
  return Math.min(patches, Math.max(byPatch, byArea));
}

/** As the source has it, and no fewer than crops of the largest size, which it also names. */
function cropsOf({ small, largest: side }: Extract<ImageRule, { by: "crops" }>, width: number, height: number): number {
  if (width <= small && height <= small) return 1;
  const unit = Math.max(1, Math.floor(Math.min(width, height) / 1.5));
  const cropsBy = (of: number): number => Math.ceil(width / of) * Math.ceil(height / of);
  return Math.max(cropsBy(unit), cropsBy(side));
}

function gridTokens(
  { side, tokensMin, tokensMax: most }: Extract<ImageRule, { by: "grid" }>,
  width: number,
  height: number,
): number {
  const cells = Math.ceil(width / side) * Math.ceil(height / side);
  // Sides are rounded to the nearest cell, so an image with a few cells more may count as too small.
  const nearest = Math.max(1, Math.ceil(width / side - 0.5)) * Math.max(1, Math.ceil(height / side - 0.5));
  if (nearest >= tokensMin) return Math.min(most, cells);
  const scale = Math.sqrt((tokensMin * side * side) / (width * height));
  return Math.min(most, Math.max(cells, Math.ceil((width * scale) / side) * Math.ceil((height * scale) / side)));
}

function rowTokens({ side, edge }: Extract<ImageRule, { by: "rows" }>, width: number, height: number): number {
  const scale = Math.min(1, edge / Math.max(width, height));
  return (Math.ceil(pixels(width * scale) / side) + 1) * Math.ceil(pixels(height * scale) / side);
}

/** Whole pixels, rounded up; what lies above by the error of a division is no pixel. */
function pixels(side: number): number {
  return Math.max(1, Math.ceil(side - 1e-6));
}
