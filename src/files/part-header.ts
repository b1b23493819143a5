/** The headers of a form and of its parts: the boundary, and each part's name, file name and content type. */
import type { Reason } from "../errors.ts";
import { decodeExtended, parseHeaderValue } from "./header-value.ts";

/** RFC 2046: at most 70 characters, the last of them not a space. */
const BOUNDARY = /^[^\r\n]{0,69}[^\r\n ]$/;

/** The boundary in a request's Content-Type, or the reason to refuse the request. */
export function boundaryOf(contentType: string | null): { ok: true; boundary: string } | { ok: false; reason: Reason } {
  const { value, parameters } = parseHeaderValue(contentType ?? "");
  if (value !== "multipart/form-data") {
    const reason: Reason = {
      reason: "unsupported_media_type",
      got: contentType ?? "",
      expected: "multipart/form-data",
    };
    return { ok: false, reason };
  }
  const boundary = parameters.get("boundary");
  if (boundary !== undefined && BOUNDARY.test(boundary)) return { ok: true, boundary };
  const message =
    boundary === undefined
      ? "the content-type names no boundary; expected multipart/form-data; boundary=…"
      : "the boundary in the content-type is invalid: expected 1 to 70 characters that do not end in a space";
  return { ok: false, reason: { reason: "invalid_request", message, param: null } };
}

/** The header of a part. Names are as sent; a file name is often missing and proves nothing. */
export type PartHeader = { name: string; filename: string | null; contentType: string | null };

/** Reads a part's header block, lines separated by CRLF; null if it names no form field. */
export function parsePartHeader(block: string): PartHeader | null {
  const headers = new Map<string, string>();
  // A line that begins with white space continues the header before it.
  for (const line of block.replace(/\r\n[ \t]+/g, " ").split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const { value, parameters } = parseHeaderValue(headers.get("content-disposition") ?? "");
  const name = parameters.get("name");
  if (value !== "form-data" || name === undefined) return null;
  const extended = parameters.get("filename*");
  const filename = (extended === undefined ? null : decodeExtended(extended)) ?? parameters.get("filename");
  return {
    name: decodeQuote(name),
    filename: filename === undefined ? null : decodeQuote(filename),
    contentType: headers.get("content-type") ?? null,
  };
}

/** Browsers and fetch send a quote as %22. They escape line breaks too, which are safer left escaped. */
function decodeQuote(text: string): string {
  return text.replaceAll("%22", '"');
}
