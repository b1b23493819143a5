/**
 * The size of an image from its header: PNG, JPEG, GIF and WebP, by their first bytes and never by what the client calls them.
 * A header that cannot be read, that contradicts itself, or is of an animation tells no size. Nothing is decoded, so an image
 * that would be huge costs no more than another.
 */
import { IMAGE_SEGMENTS_MAX } from "../../limits.ts";
import { Base64Bytes } from "./base64-bytes.ts";

export type ImageSize = { width: number; height: number };

/** What data shows of an image. `other`: it is none, but a document, a sound or a film, which images' bounds do not bound. */
export type ImageLook = ({ kind: "sized" } & ImageSize) | { kind: "unknown" } | { kind: "other" };

const UNKNOWN: ImageLook = { kind: "unknown" };
const OTHER: ImageLook = { kind: "other" };

/** Characters of a data URL before its data, at most: more are no type that a provider knows. */
const HEAD_CHARS_MAX = 256;
const COMMA = 0x2c;

/** Looks at the image that a URL has; one that is somewhere else is unknown. `url`: as the JSON has it, without the quotes. */
export function lookAtUrl(url: Uint8Array): ImageLook {
  if (!startsWithData(url)) return UNKNOWN;
  const comma = url.subarray(0, HEAD_CHARS_MAX).indexOf(COMMA);
  // Without a comma it has no data, which no provider takes.
  if (comma === -1) return url.length <= HEAD_CHARS_MAX ? UNKNOWN : OTHER;
  const head = latin(url.subarray("data:".length, comma)).toLowerCase().replaceAll("\\/", "/");
  if (!head.startsWith("image/")) return OTHER;
  return /;\s*base64$/.test(head) ? lookAtData(url.subarray(comma + 1)) : UNKNOWN;
}

/** Looks at an image in base64, as the JSON has it. */
export function lookAtData(base64: Uint8Array): ImageLook {
  const data = new Base64Bytes(base64);
  if (isOther(data)) return OTHER;
  const size = sizeOf(data);
  if (size === null || size.width < 1 || size.height < 1) return UNKNOWN;
  return { kind: "sized", ...size };
}

function startsWithData(url: Uint8Array): boolean {
  return latin(url.subarray(0, 5)).toLowerCase() === "data:";
}

function latin(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** Brands of still images in the container that films have, too. */
const STILL_BRANDS = ["avif", "heic", "heix", "mif1"];

/** Documents, sounds and films of the kinds that providers take. */
function isOther(data: Base64Bytes): boolean {
  if (data.spells(0, "%PDF") || data.spells(0, "\x1a\x45\xdf\xa3") || data.spells(0, "OggS")) return true;
  if (data.spells(0, "RIFF")) return data.spells(8, "AVI ") || data.spells(8, "WAVE");
  return data.spells(4, "ftyp") && !STILL_BRANDS.some((brand) => data.spells(8, brand));
}

function sizeOf(data: Base64Bytes): ImageSize | null {
  if (data.spells(0, "\x89PNG\r\n\x1a\n")) return pngSize(data);
  if (data.spells(0, "\xff\xd8\xff")) return jpegSize(data);
  if (data.spells(0, "GIF87a") || data.spells(0, "GIF89a")) return gifSize(data);
  if (data.spells(0, "RIFF") && data.spells(8, "WEBP")) return webpSize(data);
  return null;
}

/** Its first chunk has the size. A second one of that type is believed by some decoders; `acTL` begins an animation. */
function pngSize(data: Base64Bytes): ImageSize | null {
  if (data.big(8, 4) !== 13 || !data.spells(12, "IHDR")) return null;
  const size = { width: data.big(16, 4), height: data.big(20, 4) };
  let at = 33;
  for (let chunk = 0; chunk < IMAGE_SEGMENTS_MAX; chunk++) {
    const length = data.big(at, 4);
    if (length === -1 || data.spells(at + 4, "IHDR") || data.spells(at + 4, "acTL")) return null;
    if (data.spells(at + 4, "IDAT")) return size;
    at += 12 + length;
  }
  return null;
}

/** Markers of frames: all of their group but those of tables and of extensions. */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** The one frame before its scan has the size; profiles and previews stand before it. */
function jpegSize(data: Base64Bytes): ImageSize | null {
  let size: ImageSize | null = null;
  let at = 2;
  for (let segment = 0; segment < IMAGE_SEGMENTS_MAX; segment++) {
    if (data.at(at) !== 0xff) return null;
    const marker = data.at(at + 1);
    // Any number of these may fill the room before a marker.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker === 0xda) return size;
    const length = data.big(at + 2, 2);
    // Markers without a length have no place before the scan.
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xd9) || length < 2) return null;
    if (isFrame(marker)) {
      if (size !== null) return null;
      size = { height: data.big(at + 5, 2), width: data.big(at + 7, 2) };
    }
    at += 2 + length;
  }
  return null;
}

const EXTENSION = 0x21;
const DESCRIPTOR = 0x2c;
const APPLICATION = 0xff;

/** The screen has the size, and its first image lies on it. An extension of an application makes it an animation. */
function gifSize(data: Base64Bytes): ImageSize | null {
  const size = { width: data.little(6, 2), height: data.little(8, 2) };
  const flags = data.at(10);
  let at = 13 + ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1));
  for (let block = 0; block < IMAGE_SEGMENTS_MAX; block++) {
    const kind = data.at(at);
    if (kind === DESCRIPTOR) {
      const right = data.little(at + 1, 2) + data.little(at + 5, 2);
      const bottom = data.little(at + 3, 2) + data.little(at + 7, 2);
      return right <= size.width && bottom <= size.height && data.at(at + 9) !== -1 ? size : null;
    }
    if (kind !== EXTENSION || (data.at(at + 1) === APPLICATION && isLoop(data, at + 3))) return null;
    at = behindBlocks(data, at + 2);
    if (at === -1) return null;
  }
  return null;
}

function isLoop(data: Base64Bytes, at: number): boolean {
  return data.spells(at, "NETSCAPE") || data.spells(at, "ANIMEXTS");
}

/** The index behind the blocks of an extension, of which an empty one is the last; -1 = there is none. */
function behindBlocks(data: Base64Bytes, from: number): number {
  let at = from;
  for (let block = 0; block < IMAGE_SEGMENTS_MAX; block++) {
    const length = data.at(at);
    if (length === -1) return -1;
    at += 1 + length;
    if (length === 0) return at;
  }
  return -1;
}

const ANIMATION = 0x02;

/** The canvas of the extended form has the size, and the frame in it must fit it; the simple forms have one frame only. */
function webpSize(data: Base64Bytes): ImageSize | null {
  if (!data.spells(12, "VP8X")) return webpFrame(data, 12);
  const flags = data.at(20);
  if (flags === -1 || (flags & ANIMATION) !== 0) return null;
  const size = { width: 1 + data.little(24, 3), height: 1 + data.little(27, 3) };
  let at = 12;
  for (let chunk = 0; chunk < IMAGE_SEGMENTS_MAX; chunk++) {
    const length = data.little(at + 4, 4);
    if (length === -1 || data.spells(at, "ANMF")) return null;
    if (data.spells(at, "VP8 ") || data.spells(at, "VP8L")) {
      const frame = webpFrame(data, at);
      return frame?.width === size.width && frame.height === size.height ? size : null;
    }
    // Chunks have even lengths.
    at += 8 + length + (length % 2);
  }
  return null;
}

/** The size in the header of a frame, whose chunk begins at an index. */
function webpFrame(data: Base64Bytes, at: number): ImageSize | null {
  if (data.spells(at, "VP8L")) {
    const bits = data.little(at + 9, 4);
    if (data.at(at + 8) !== 0x2f || bits === -1) return null;
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  // Only a key frame has a size.
  if (!data.spells(at, "VP8 ") || (data.at(at + 8) & 1) !== 0 || !data.spells(at + 11, "\x9d\x01\x2a")) return null;
  const [width, height] = [data.little(at + 14, 2), data.little(at + 16, 2)];
  return width === -1 || height === -1 ? null : { width: width & 0x3fff, height: height & 0x3fff };
}
