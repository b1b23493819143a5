/** Replaces chance in the simulated upstream: numbers that depend on a text alone, so that runs can be repeated. */

/** 32-bit FNV-1a over UTF-16 code units, mixed so that texts which differ only at their end get distant values. */
export function promptHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return spread(hash);
}

/** Two rounds of multiply and shift: neighbouring numbers get unlike results in [0, 2³²). */
export function spread(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** A fraction in [0, 1) that depends on the text alone. */
export function fraction(text: string): number {
  return promptHash(text) / 2 ** 32;
}

/** The hash as written in the ids of answers. */
export function idOf(text: string): string {
  return promptHash(text).toString(16).padStart(8, "0");
}
