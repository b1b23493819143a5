/**
 * A regular expression as a tree. The runtime's own parser has accepted the source in `u` mode before it is read here, so
 * this looks for structure only. Single characters (letters, escapes, classes) stay source text, for the runtime's own
 * engine: a match of one character takes no time worth bounding.
 */

/** `char` matches one character; its source is a whole expression for it. */
export type Node =
  | { kind: "char"; source: string }
  | { kind: "assert"; what: Assertion }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "choice"; options: Node[] }
  | { kind: "repeat"; node: Node; min: number; max: number };

export type Assertion = "start" | "end" | "boundary" | "inside";

/** The tree, or what in the source has no linear-time match: look-around, back-references, modifiers. */
export function parsePattern(source: string): Node | { unsupported: string } {
  const reader = new PatternReader(source);
  const node = reader.choice();
  return reader.unsupported === null ? node : { unsupported: reader.unsupported };
}

const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  "^": "start",
  $: "end",
  "\\b": "boundary",
  "\\B": "inside",
};

class PatternReader {
  readonly #source: string;
  #at = 0;
  /** The first part of the source that cannot be matched in linear time. */
  unsupported: string | null = null;

  constructor(source: string) {
    this.#source = source;
  }

  choice(): Node {
    const options = [this.#sequence()];
    while (this.#source[this.#at] === "|") {
      this.#at += 1;
      options.push(this.#sequence());
    }
    const [only] = options;
    return only !== undefined && options.length === 1 ? only : { kind: "choice", options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && this.#source[this.#at] !== "|" && this.#source[this.#at] !== ")") {
      parts.push(this.#repeated(this.#atom()));
    }
    return { kind: "sequence", parts };
  }

  #atom(): Node {
    const source = this.#take(this.#atomLength());
    const what = ASSERTIONS[source];
    if (what !== undefined) return { kind: "assert", what };
    if (source.startsWith("(")) return this.#group(source);
    if (/^\\(?:[1-9]|k)/.test(source)) this.unsupported ??= "a back-reference";
    return { kind: "char", source };
  }

  /** A group, after its bracket and what follows that. */
  #group(opening: string): Node {
    if (opening === "(?") {
      const [found] = /^(?:<?[=!]|[a-z]*-?[a-z]*:|)/.exec(this.#source.slice(this.#at)) ?? [""];
      this.unsupported ??= /[=!]/.test(found) ? "look-around" : "a modifier";
    }
    const node = this.choice();
    this.#at += 1;
    return node;
  }

  #repeated(node: Node): Node {
    const [found, exact, from, comma, to] =
      /^(?:[*+?]|\{(?:(\d+)|(\d+)(,)(\d*))\})/.exec(this.#source.slice(this.#at, this.#at + QUANTIFIER_CHARS)) ?? [];
    if (found === undefined) return node;
    this.#at += found.length;
    // A lazy quantifier matches the same texts.
    if (this.#source[this.#at] === "?") this.#at += 1;
    if (exact !== undefined) return { kind: "repeat", node, min: Number(exact), max: Number(exact) };
    if (comma !== undefined) return { kind: "repeat", node, min: Number(from), max: to ? Number(to) : Infinity };
    return { kind: "repeat", node, min: found === "+" ? 1 : 0, max: found === "?" ? 1 : Infinity };
  }

  #take(length: number): string {
    const taken = this.#source.slice(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  #atomLength(): number {
    const rest = this.#source.slice(this.#at);
    const [found] =
      /^(?:\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u\{[\da-fA-F]+\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\c[a-zA-Z]|\\[pP]\{[^}]*\}|\\.)/.exec(
        rest,
      ) ??
      /^\[(?:\\.|[^\\\]])*\]/s.exec(rest) ??
      /^\((?:\?(?:<(?![=!])[^>]*>|:)?)?/.exec(rest) ??
      [];
    return found?.length ?? String.fromCodePoint(rest.codePointAt(0) ?? 0).length;
  }
}

/** Characters of the longest quantifier that is read: two numbers far above any bound. */
const QUANTIFIER_CHARS = 40;
