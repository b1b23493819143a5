/**
 * The bytes that a text can have beyond those it was sent in when its tokens are cut. Some tokenizers normalise first:
 * NFC (Qwen, GPT-NeoX, Command), NFKC (older Claude, T5, XLM-R, E5), either with lower case (CLIP, BGE). U+FDFA is sent in
 * 3 bytes and has 33 after NFKC. With these bytes added, a token per byte is a bound for every text.
 *
 * Growth is a sum over code points, because composing never adds bytes (the tests check all of Unicode): a
 * text after NFKC is at most its NFKD, and each code point counts its NFKD once it is composed again. It is not
 * composed again only if a mark that sorts before its own takes its base: such marks count for that, too.
 *
 * NFD and NFKD themselves count by characters, not bytes, because the tokenizers that use them (ALBERT, XLNet, BERT) have
 * no tokens of bytes: at most one token a character.
 */

/** First to last code point, in hexadecimal, and the bytes that each of them can add. */
const GROWTH = `
  a8+1 af+1 b4+1 b8+1 bc-be+3 130+1 13f-140+1 149+1 1c4-1c6+1 1d5-1dc+1 1de-1e1+1 1ec-1ed+1 1fa-1fb+1 22a-22d+1
  230-231+1 23a+1 23e+1 2d8-2dd+1 31b+2 323-328+2 32d-32e+2 330-331+2 344+2 37a+1 384+1 385+3 390+1 3b0+1 587+2
  675-678+2 958-95f+3 9dc-9dd+3 9df+3 a33+3 a36+3 a59-a5b+3 a5e+3 b5c-b5d+3 e33+3 eb3+3 edc-edd+3 f43+3 f4d+3 f52+3
  f57+3 f5c+3 f69+3 f73+3 f75-f76+3 f77+6 f78+3 f79+6 f81+3 f93+3 f9d+3 fa2+3 fa7+3 fac+3 fb9+3 1f82-1f87+1
  1f8a-1f8f+1 1f92-1f97+1 1f9a-1f9f+1 1fa2-1fa7+1 1faa-1faf+1 1fc1+2 1fcd-1fcf+2 1fdd-1fdf+2 1fed-1fee+2 2033+3
  2034+6 2036+3 2037+6 2057+9 2150-2151+2 2152+3 2153-215e+2 215f+1 2167+1 2177+1 2189+2 222c+3 222d+6 222f+3 2230+6
  247d-2487+1 2a0c+9 2adc+2 309b-309c+1 309f+3 30ff+3 3200-321c+2 321d-321e+5 3220-3243+2 327c-327d+3 32c0-32c8+1
  32c9-32cb+2 32ff+3 3300-3302+9 3303+6 3304+9 3305-3306+6 3307+12 3308+9 3309-330b+6 330c-330d+9 330e-330f+6 3310+3
  3311+6 3312-3313+9 3314+3 3315+12 3316+15 3317+12 3318+6 3319-331a+12 331b+9 331c-331e+6 331f+9 3320+12 3321+9
  3322-3324+6 3325-3328+3 3329-332a+6 332b+12 332c+6 332d+9 332e+12 332f+6 3330-3331+3 3332+12 3333+9 3334+12 3335+6
  3336+12 3337+3 3338-333c+6 333d+9 333e+6 333f+3 3340-3342+6 3343+9 3344-3346+6 3347+12 3348+9 3349+3 334a+12
  334b+3 334c-334d+9 334e-3350+6 3351+9 3352+3 3353+6 3354+9 3355+3 3356+12 3357+6 3358-3361+1 3362-3370+2
  337b-337e+3 337f+9 3389+1 33a7+2 33a8+3 33ae+4 33af+5 33c2+1 33c6+3 33d8+1 33de-33df+2 33e0-33e8+1 33e9-33fe+2
  fa6c+1 facf-fad1+1 fad5-fad7+1 fb13-fb17+1 fb1d+1 fb1f+1 fb2a-fb2b+1 fb2c-fb2d+3 fb2e-fb36+1 fb38-fb3c+1 fb3e+1
  fb40-fb41+1 fb43-fb44+1 fb46-fb4f+1 fbdd+1 fbea-fbfb+1 fc00-fc5d+1 fc5e-fc63+2 fc64-fcf1+1 fcf2-fcf4+3 fcf5-fd3d+1
  fd50-fd8f+3 fd92-fdc7+3 fdf0-fdf1+3 fdf2-fdf8+5 fdf9+3 fdfa+30 fdfb+12 fdfc+5 fe71+1 fe77+1 fe79+1 fe7b+1 fe7d+1
  fe7f+1 fef5-fefc+1 1d15e-1d15f+4 1d160-1d164+8 1d1bb-1d1bc+4 1d1bd-1d1c0+8 1f12a+3 1f200-1f201+2 1f240-1f248+5`;

/** No code point from here on adds bytes: all decompose to code points that are as short. */
const GROWTH_END = 0x20000;
const PAGE_BITS = 6;
const PAGE_SIZE = 1 << PAGE_BITS;
/** No code point below this grows. */
const FIRST_GROWING = 0xa8;
const SURROGATE_FIRST = 0xd800;
const SURROGATE_LAST = 0xdfff;

const BACKSLASH = 92;
const LETTER_U = 117;
/** Bytes of a `\uXXXX` escape. */
const ESCAPE_BYTES = 6;

/** By code point / 64: the number of its page in `growth`; 0 = no code point of it grows. */
const pages = new Uint8Array(GROWTH_END >> PAGE_BITS);
const growth = unpack();

/** Bytes that normalising can add to a text. */
export function normalisedGrowth(text: string): number {
  let added = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < FIRST_GROWING) continue;
    const code = text.codePointAt(at) ?? unit;
    added += growthOf(code);
    if (code !== unit) at++;
  }
  return added;
}

/**
 * Bytes that normalising can add to the texts in JSON, whose bytes are UTF-8. An escaped character may grow beyond the six bytes
 * of its escape; JSON within JSON may be read too, so any number of backslashes may begin an escape.
 */
export function jsonNormalisedGrowth(json: Uint8Array, from = 0, to = json.length): number {
  let added = 0;
  for (let at = from; at < to;) {
    const byte = json[at] ?? 0;
    if (byte < 0x80) {
      at++;
      if (byte === BACKSLASH) added += escapeGrowth(json, at);
      continue;
    }
    const size = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    let page = size === 2 ? byte & 0x1f : size === 3 ? byte & 0x0f : byte & 0x07;
    for (let next = 1; next < size - 1; next++) page = (page << 6) | ((json[at + next] ?? 0) & 0x3f);
    const begin = pages[page] ?? 0;
    if (begin !== 0) added += growth[begin * PAGE_SIZE + ((json[at + size - 1] ?? 0) & 0x3f)] ?? 0;
    at += size;
  }
  return added;
}

/** The bytes that an escaped character adds to its escape, whose `u` is at `at`. */
function escapeGrowth(json: Uint8Array, at: number): number {
  const code = escapedCode(json, at);
  // Half of a surrogate pair: no character of two escapes grows beyond their twelve bytes.
  if (code === null || (code >= SURROGATE_FIRST && code <= SURROGATE_LAST)) return 0;
  const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
  return Math.max(0, bytes + growthOf(code) - ESCAPE_BYTES);
}

/** The code of an escape whose `u` is at `at`; null if no four hexadecimal digits follow. */
export function escapedCode(json: Uint8Array, at: number): number | null {
  if (json[at] !== LETTER_U) return null;
  let code = 0;
  for (let next = at + 1; next <= at + 4; next++) {
    const digit = digitOf(json[next] ?? 0);
    if (digit === -1) return null;
    code = code * 16 + digit;
  }
  return code;
}

/** The value of a hexadecimal digit; -1 for another byte. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function growthOf(code: number): number {
  const page = pages[code >> PAGE_BITS] ?? 0;
  return page === 0 ? 0 : (growth[page * PAGE_SIZE + (code & (PAGE_SIZE - 1))] ?? 0);
}

/** Fills `pages`. */
function unpack(): Uint8Array {
  const found: number[][] = [[]];
  for (const [, first = "", last = first, added = ""] of GROWTH.matchAll(/([0-9a-f]+)(?:-([0-9a-f]+))?\+(\d+)/g)) {
    for (let code = Number.parseInt(first, 16); code <= Number.parseInt(last, 16); code++) {
      const page = (pages[code >> PAGE_BITS] ||= found.length);
      (found[page] ??= [])[code & (PAGE_SIZE - 1)] = Number(added);
    }
  }
  const unpacked = new Uint8Array(found.length * PAGE_SIZE);
  found.forEach((page, at) => page.forEach((added, code) => (unpacked[at * PAGE_SIZE + code] = added)));
  return unpacked;
}
