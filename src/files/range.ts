/** A request's Range header, applied to a file of known size. */

/** Which bytes to answer with; `lastByte` is inclusive, as on the wire. */
export type RangeAsked =
  | { kind: "whole" }
  | { kind: "range"; firstByte: number; lastByte: number }
  | { kind: "unsatisfiable" };

const WHOLE: RangeAsked = { kind: "whole" };

/** Several ranges, other units and what is no range are ignored, as HTTP allows: the answer is then the whole file. */
export function rangeAsked(header: string | null, sizeBytes: number): RangeAsked {
  const [, first = "", last = ""] = /^bytes[ \t]*=[ \t]*(\d*)[ \t]*-[ \t]*(\d*)[ \t]*$/i.exec(header ?? "") ?? [];
  if (first === "" && last === "") return WHOLE;
  if (first === "") {
    // The last so many bytes; of an empty file those are the whole of it, for which there is no range to name.
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
