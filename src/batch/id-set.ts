/**
 * The `custom_id`s of a file, to see which stands twice, in bounded memory: 50,000 of the longest would take 50 MB, so
 * of long ones only a digest is kept.
 */

/** Ids up to this length are kept as they are, UTF-16 units: nearly all are shorter. */
const KEPT_CHARS_MAX = 64;

export class IdSet {
  readonly #short = new Set<string>();
  readonly #long = new Set<string>();

  /** Whether the id is new. */
  add(id: string): boolean {
    const isShort = id.length <= KEPT_CHARS_MAX;
    const set = isShort ? this.#short : this.#long;
    const before = set.size;
    set.add(isShort ? id : digest(id));
    return set.size > before;
  }
}

/** Four lanes of 32 bits and the length: two of 50,000 ids are taken for equal once in 10²⁸ files. */
function digest(id: string): string {
  let a = 0x9e3779b9;
  let b = 0x243f6a88;
  let c = 0xb7e15162;
  let d = 0x6a09e667;
  for (let at = 0; at < id.length; at++) {
    const unit = id.charCodeAt(at);
    a = mix(a ^ unit, 0x85ebca6b, b);
    b = mix(b ^ unit, 0xc2b2ae35, c);
    c = mix(c ^ unit, 0x27d4eb2f, d);
    d = mix(d ^ unit, 0x165667b1, a);
  }
  return `${id.length}:${a}:${b}:${c}:${d}`;
}

function mix(lane: number, factor: number, neighbour: number): number {
  const product = Math.imul(lane, factor);
  return (((product << 13) | (product >>> 19)) + neighbour) | 0;
}
