/** Applies a request's Range header to a file of known size. */

/** The bytes to answer with; `lastByte` is inclusive, as on the wire. */
export type RequestedRange =
  | { kind: "whole" }
  | { kind: "range"; firstByte: number; lastByte: number }
  | { kind: "unsatisfiable" };

const WHOLE: RequestedRange = { kind: "whole" };

/** Several ranges, other units and malformed ranges are ignored, as HTTP allows: the answer is the whole file. */
export function requestedRange(header: string | null, sizeBytes: number): RequestedRange {
  const { first, last } = boundsIn(header ?? "");
  if (first === "" && last === "") return WHOLE;
  if (first === "") {
    // The last bytes of the file. An empty file has no range, so the answer is the whole file.
    const suffix = Number(last);
    if (suffix === 0) return { kind: "unsatisfiable" };
    if (sizeBytes === 0) return WHOLE;
    return { kind: "range", firstByte: Math.max(0, sizeBytes - suffix), lastByte: sizeBytes - 1 };
  }
  const firstByte = Number(first);
  if (last !== "" && Number(last) < firstByte) return WHOLE;
  if (firstByte >= sizeBytes) return { kind: "unsatisfiable" };
  const lastByte = last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  return { kind: "range", firstByte, lastByte };
}

const DIGITS = /^\d*$/;

/** The first and the last byte as written in the header, "" if missing. Split at its signs, in one pass. */
function boundsIn(header: string): { first: string; last: string } {
  const none = { first: "", last: "" };
  const equals = header.indexOf("=");
  const dash = header.indexOf("-", equals);
  if (equals < 0 || dash < 0 || header.slice(0, equals).trim().toLowerCase() !== "bytes") return none;
  const first = header.slice(equals + 1, dash).trim();
  const last = header.slice(dash + 1).trim();
  return DIGITS.test(first) && DIGITS.test(last) ? { first, last } : none;
}
