/**
 * How servers read JSON when names are doubled or differ in case: the upstream's own reader, which shares no code with
 * the gateway's. `last` and `first` compare names exactly; `fold` is Go's encoding/json: without case, the last one wins.
 */
export type KeyPolicy = "last" | "first" | "fold";

export type Value =
  | { kind: "object"; members: readonly (readonly [string, Value])[] }
  | { kind: "array"; items: readonly Value[] }
  | { kind: "string"; text: string }
  | { kind: "number"; number: number }
  | { kind: "boolean"; boolean: boolean }
  | { kind: "null" };

/** Throws on what is no JSON. */
export function parseLenient(text: string): Value {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): Value {
    this.#space();
    const char = this.#text[this.#at];
    if (char === "{") return this.#object();
    if (char === "[") return this.#array();
    if (char === '"') return { kind: "string", text: this.#string() };
    const word = /^(?:true|false|null|-?\d[\d.eE+-]*)/.exec(this.#text.slice(this.#at, this.#at + 400))?.[0] ?? "";
    if (word === "") throw new Error(`no JSON at ${this.#at}`);
    this.#at += word.length;
    if (word === "null") return { kind: "null" };
    if (word === "true" || word === "false") return { kind: "boolean", boolean: word === "true" };
    return { kind: "number", number: Number(word) };
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length) throw new Error(`more than JSON at ${this.#at}`);
  }

  #object(): Value {
    const members: (readonly [string, Value])[] = [];
    this.#at += 1;
    if (this.#take("}")) return { kind: "object", members };
    do {
      this.#space();
      const name = this.#string();
      if (!this.#take(":")) throw new Error(`no colon at ${this.#at}`);
      members.push([name, this.value()]);
    } while (this.#take(","));
    if (!this.#take("}")) throw new Error(`no end of the object at ${this.#at}`);
    return { kind: "object", members };
  }

  #array(): Value {
    const items: Value[] = [];
    this.#at += 1;
    if (this.#take("]")) return { kind: "array", items };
    do items.push(this.value());
    while (this.#take(","));
    if (!this.#take("]")) throw new Error(`no end of the list at ${this.#at}`);
    return { kind: "array", items };
  }

  #string(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') throw new Error(`no text at ${start}`);
    let at = start + 1;
    while (this.#text[at] !== '"') {
      if (at >= this.#text.length) throw new Error("a text without an end");
      at += this.#text[at] === "\\" ? 2 : 1;
    }
    this.#at = at + 1;
    return String(JSON.parse(this.#text.slice(start, this.#at)));
  }

  #take(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "x")) this.#at += 1;
  }
}

/** Case folding of one character each, as Go compares names: the long s and the Kelvin sign are letters too. */
export function folded(name: string): string {
  return name.toLowerCase().replaceAll("\u017f", "s").replaceAll("\u212a", "k");
}

/** The member of that name, as a server of this policy finds it. */
export function member(value: Value | undefined, name: string, policy: KeyPolicy): Value | undefined {
  if (value?.kind !== "object") return undefined;
  const matches = value.members.filter(([key]) => (policy === "fold" ? folded(key) === name : key === name));
  return (policy === "first" ? matches[0] : matches.at(-1))?.[1];
}

export function textOf(value: Value | undefined): string | null {
  return value?.kind === "string" ? value.text : null;
}

export function numberOf(value: Value | undefined): number | null {
  return value?.kind === "number" && Number.isFinite(value.number) ? value.number : null;
}

export function isTrue(value: Value | undefined): boolean {
  return value?.kind === "boolean" && value.boolean;
}

export function itemsOf(value: Value | undefined): readonly Value[] {
  return value?.kind === "array" ? value.items : [];
}

/** JSON of a value without white space, as a template would print it. */
export function jsonOf(value: Value): string {
  switch (value.kind) {
    case "object":
      return `{${value.members.map(([name, item]) => `${JSON.stringify(name)}:${jsonOf(item)}`).join(",")}}`;
    case "array":
      return `[${value.items.map(jsonOf).join(",")}]`;
    case "string":
      return JSON.stringify(value.text);
    case "number":
      return String(value.number);
    case "boolean":
      return String(value.boolean);
    case "null":
      return "null";
  }
}
