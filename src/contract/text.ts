/** Checks of text at the edge: its bytes, and whether every store and upstream can represent it. */

const encoder = new TextEncoder();
/** Reused, because a batch counts ten thousand prompts: its content means nothing between two calls. */
const scratch = new Uint8Array(65_536);

/** UTF-8 bytes of a text, counted without keeping its encoding. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const { read, written } = encoder.encodeInto(at === 0 ? text : text.slice(at), scratch);
    bytes += written;
    at += read;
  }
  return bytes;
}

/** What keeps a text from being sent, or null. Lone surrogates have no UTF-8; NUL ends strings in too many programs. */
export function textFault(text: string): string | null {
  if (!text.isWellFormed()) return "contains a lone surrogate (half a character); expected well-formed Unicode";
  const nulAt = text.indexOf("\0");
  return nulAt === -1 ? null : `contains a NUL character at index ${nulAt}; expected text without NUL`;
}

/** Whether arrays and objects are nested deeper than `depthMax`; recursion ends there, so hostile input costs no stack. */
export function nestsDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depthMax === 0) return true;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (nestsDeeperThan(inner, depthMax - 1)) return true;
  }
  return false;
}
