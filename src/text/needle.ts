/** A text that people search for in other texts, without regard to case; and how a place where it was found is shown. */

/** Characters that an excerpt shows before and behind what was found. */
const BEFORE_CHARS = 40;
const BEHIND_CHARS = 80;

/** Texts that JSON writes as they are, whoever writes it. */
const PLAIN = /^[ !#-.0-[\]-~]*$/;

export class Needle {
  readonly #text: string;
  readonly #isPlain: boolean;

  /** @param text What is searched; the empty text is in every other one. */
  constructor(text: string) {
    this.#text = text.toLowerCase();
    this.#isPlain = PLAIN.test(text);
  }

  isIn(text: string): boolean {
    return text.toLowerCase().includes(this.#text);
  }

  /** Whether a text inside this JSON may have it. False is certain: then the JSON need not be parsed. */
  mayBeIn(json: string): boolean {
    return !this.#isPlain || this.isIn(json) || json.includes("\\u");
  }

  /** What surrounds the first place where a text has it, on one line; null = it has it nowhere. */
  excerptOf(text: string): string | null {
    const at = text.toLowerCase().indexOf(this.#text);
    if (at === -1) return null;
    // A few letters have another length in lower case, which moves the excerpt by as much.
    const [from, to] = [Math.max(0, at - BEFORE_CHARS), at + this.#text.length + BEHIND_CHARS];
    const cut = text.slice(from, to).toWellFormed().replace(/\s+/g, " ").trim();
    return `${from > 0 ? "… " : ""}${cut}${to < text.length ? " …" : ""}`;
  }
}
