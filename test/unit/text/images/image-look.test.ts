import { describe, expect, it } from "vitest";
import { IMAGE_SEGMENTS_MAX } from "../../../../src/limits.ts";
import { lookAtData, lookAtUrl } from "../../../../src/text/images/image-look.ts";
import {
  dataUrl,
  fileOf,
  HOSTILE,
  jpeg,
  NO_IMAGES,
  png,
  REAL_SIZES,
  webp,
  type Size,
} from "../../../support/images.ts";

const encoder = new TextEncoder();
/** As a JSON text has it, between its quotes. */
const inJson = (text: string): Uint8Array => encoder.encode(JSON.stringify(text).slice(1, -1));
const look = (url: string) => lookAtUrl(inJson(url));
const sized = ([width, height]: Size) => ({ kind: "sized", width, height });

describe("the size of an image", () => {
  it("is read from PNG, JPEG, GIF and WebP of 60 real sizes", () => {
    expect(REAL_SIZES.length).toBe(60);
    for (const [turn, size] of REAL_SIZES.entries()) {
      expect(look(fileOf(size, turn)), `${String(size)}, ${turn}`).toEqual(sized(size));
    }
  });

  it.each<[string, string, Size]>([
    ["a PNG as large as its format allows", dataUrl("png", png([2 ** 31 - 1, 1])), [2 ** 31 - 1, 1]],
    ["a JPEG of one row", dataUrl("jpeg", jpeg([65_535, 1])), [65_535, 1]],
    [
      "a WebP without loss, as large as it may be",
      dataUrl("webp", webp([16_384, 16_384], "lossless")),
      [16_384, 16_384],
    ],
    ["an extended WebP", dataUrl("webp", webp([3, 16_000], "extended")), [3, 16_000]],
    ["an image under a wrong type of image", dataUrl("gif", png([7, 9])), [7, 9]],
    ["a type in capitals, with a parameter", `DATA:Image/PNG;charset=utf-8;BASE64,${png([7, 9])}`, [7, 9]],
  ])("is read from %s", (_, url, size) => {
    expect(look(url)).toEqual(sized(size));
  });

  it("is read behind megabytes of profiles, without reading them", () => {
    const data = jpeg([640, 480], { profiles: 40 });
    expect(data.length).toBeGreaterThan(3_000_000);
    expect(lookAtData(encoder.encode(data))).toEqual(sized([640, 480]));
  });

  it("is read where JSON escapes each slash, as PHP writes it", () => {
    const url = dataUrl("jpeg", jpeg([1_234, 567], { profiles: 1 }));
    const escaped = JSON.stringify(url).slice(1, -1).replaceAll("/", "\\/");
    expect(escaped).toContain("\\/");
    expect(lookAtUrl(encoder.encode(escaped))).toEqual(sized([1_234, 567]));
  });

  it.each(HOSTILE)("is not believed of $name", ({ type, data }) => {
    expect(look(dataUrl(type, data))).toEqual({ kind: "unknown" });
  });

  it("is not known of what is somewhere else, or is no base64", () => {
    for (const url of ["https://images.example/a.png", "file_1", "", "data:image/svg+xml;utf8,<svg/>"]) {
      expect(look(url)).toEqual({ kind: "unknown" });
    }
  });

  it.each(NO_IMAGES)("is not looked for in $name: no size bounds it", ({ url }) => {
    expect(look(url)).toEqual({ kind: "other" });
  });

  it("is not known of a file that is cut anywhere before its pixels, and never smaller than it is", () => {
    for (const [turn, size] of REAL_SIZES.slice(0, 14).entries()) {
      const url = fileOf(size, turn).slice(0, 2_000);
      const head = url.indexOf(",") + 1;
      for (let end = head; end <= url.length; end++) {
        const seen = look(url.slice(0, end));
        if (seen.kind === "sized") expect([seen.width, seen.height]).toEqual(size);
        else expect(seen).toEqual({ kind: "unknown" });
      }
    }
  });

  it("reads no more segments than its bound", () => {
    const fill = (count: number) => {
      const bytes = Buffer.from(jpeg([5, 6]), "base64");
      const comments = Buffer.from(Array.from({ length: count }, () => [0xff, 0xfe, 0, 2]).flat());
      return Buffer.concat([bytes.subarray(0, 2), comments, bytes.subarray(2)]).toString("base64");
    };
    // The other segments are the application's, the frame and the scan.
    expect(lookAtData(encoder.encode(fill(IMAGE_SEGMENTS_MAX - 3)))).toEqual(sized([5, 6]));
    expect(lookAtData(encoder.encode(fill(IMAGE_SEGMENTS_MAX - 2)))).toEqual({ kind: "unknown" });
  });
});
