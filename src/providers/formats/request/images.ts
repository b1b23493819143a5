/** Reads what a request says of an image: where it is, its size if the request has it, and how much of it is to be seen. */
import type { ImageDetail, ImageFacts } from "../../../call.ts";
import { lookAtData, lookAtUrl, type ImageLook } from "../../../text/images/image-look.ts";
import { member, readObject, valueAtPath, type JsonObject, type JsonValue } from "../../../text/json/scan.ts";
import { hasValue } from "./fields.ts";
import { noteImage, textOf, type ScanContext } from "./scan-context.ts";

const UNKNOWN: ImageLook = { kind: "unknown" };

/** Counts the image of a part. `data`: the paths of what the part may have it in. */
export function readImage(
  scan: ScanContext,
  part: JsonObject,
  data: readonly (readonly [string, ...string[]])[],
): void {
  const look = lookAt(scan, part, data);
  // A document that calls itself an image has any number of pages.
  if (look.kind === "other") scan.fileParts += 1;
  else noteImage(scan, { ...sizeOf(look), ...detailOf(scan, part) });
}

function sizeOf(look: ImageLook): Pick<ImageFacts, "width" | "height"> {
  return look.kind === "sized" ? { width: look.width, height: look.height } : { width: 0, height: 0 };
}

/** Of several places, an upstream may read any: then the size is not known. */
function lookAt(scan: ScanContext, part: JsonObject, data: readonly (readonly [string, ...string[]])[]): ImageLook {
  const source = member(part, "source");
  if (source !== null) return lookAtSource(scan, source);
  const texts = data
    .map((path) => valueAtPath(scan.bytes, part, path))
    .filter((value): value is NonNullable<typeof value> => value?.kind === "text");
  const looks = texts.map((text) => lookAtUrl(insideOf(scan, text)));
  if (looks.some(({ kind }) => kind === "other")) return { kind: "other" };
  const [only, ...more] = looks;
  return only === undefined || more.length > 0 ? UNKNOWN : only;
}

/** Anthropic's form: the data alone, with its type beside it. */
function lookAtSource(scan: ScanContext, value: JsonValue): ImageLook {
  const source = value.kind === "object" ? readObject(scan.bytes, value.start) : null;
  if (source === null) return UNKNOWN;
  const data = member(source, "data");
  const namesAnother = ["url", "file_id"].some((name) => hasValue(scan.bytes, member(source, name)));
  if (data?.kind !== "text" || textOf(scan, member(source, "type")) !== "base64") return UNKNOWN;
  const type = textOf(scan, member(source, "media_type"));
  if (type !== null && !type.toLowerCase().startsWith("image/")) return { kind: "other" };
  const look = lookAtData(insideOf(scan, data));
  return namesAnother && look.kind === "sized" ? UNKNOWN : look;
}

/** The bytes of a text between its quotes. */
function insideOf({ bytes }: ScanContext, { start, end }: JsonValue): Uint8Array {
  return bytes.subarray(start + 1, end - 1);
}

const DETAILS: ReadonlyMap<string, ImageDetail | null> = new Map([
  ["auto", null],
  ["low", "low"],
  ["high", "high"],
  ["original", "original"],
]);

/** In the part, or in the object of its URL; if both have one, the one that counts is not known. */
function detailOf(scan: ScanContext, part: JsonObject): Pick<ImageFacts, "detail"> {
  const found = [member(part, "detail"), valueAtPath(scan.bytes, part, ["image_url", "detail"])].filter(
    (value): value is NonNullable<typeof value> => value !== null && value.kind !== "null",
  );
  const [only, ...more] = found;
  if (only === undefined) return {};
  const known = more.length > 0 ? undefined : DETAILS.get(textOf(scan, only) ?? "");
  if (known === null) return {};
  return { detail: known ?? "other" };
}
