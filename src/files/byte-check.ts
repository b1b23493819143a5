/** Checks of bytes that pass by. Each looks at every piece once, holds next to nothing, and objects with a reason. */
import type { Reason } from "../errors.ts";
import { FIRST_LINE_BYTES_MAX } from "../limits.ts";

/** `see` is told each piece in order, `end` that there are no more. An objection is final. */
export type ByteCheck = { see(bytes: Uint8Array): Reason | null; end(): Reason | null };

/** Objects to bytes that are no UTF-8, also to a character that the end cuts off. */
export function utf8Check(objection: Reason): ByteCheck {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const decode = (bytes: Uint8Array | undefined, isLast: boolean) => {
    try {
      decoder.decode(bytes, { stream: !isLast });
      return null;
    } catch {
      return objection;
    }
  };
  return { see: (bytes) => decode(bytes, false), end: () => decode(undefined, true) };
}

const LF = 10;

/**
 * Objects unless the first line that is not blank is a JSON object, and to a file of blank lines only. A byte order mark
 * may precede it. Of a line that is too long to be held only the beginning is looked at.
 */
export function firstLineCheck(objection: Reason): ByteCheck {
  const decoder = new TextDecoder();
  let line = "";
  let isSettled = false;
  const settle = (isLooksRight: boolean) => {
    isSettled = true;
    line = "";
    return isLooksRight ? null : objection;
  };
  return {
    see(bytes) {
      if (isSettled) return null;
      for (let at = 0; at < bytes.length;) {
        const lineEnd = bytes.indexOf(LF, at);
        const end = lineEnd === -1 ? bytes.length : lineEnd + 1;
        const piece = decoder.decode(bytes.subarray(at, end), { stream: true });
        at = end;
        // The line as a whole is looked at once only: to do so at each piece would take the square of its length.
        const isBegun = line !== "";
        line = isBegun ? line + piece : piece.trimStart();
        if (!isBegun && line !== "" && !line.startsWith("{")) return settle(false);
        if (lineEnd !== -1 && line !== "") return settle(isObject(line));
        if (line.length > FIRST_LINE_BYTES_MAX) return settle(true);
      }
      return null;
    },
    end: () => (isSettled ? null : settle(isObject(line))),
  };
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** All checks at once; the first objection counts. */
export function allChecks(checks: readonly ByteCheck[]): ByteCheck {
  const first = (ask: (check: ByteCheck) => Reason | null) => {
    for (const check of checks) {
      const objection = ask(check);
      if (objection !== null) return objection;
    }
    return null;
  };
  return { see: (bytes) => first((check) => check.see(bytes)), end: () => first((check) => check.end()) };
}
