/** Arithmetic and comparisons of numbers, so that the model computes what it was really sent. */

const TOKEN = /\s*(\d+(?:\.\d+)?|>=|<=|==|[-+*/(),<>]|max|min)/gy;

/** The value of an expression such as `max(333, 330) > 310`; null if it is none. */
export function valueOf(expression: string): number | boolean | null {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  const text = expression.trim();
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[1];
    if (token === undefined) return null;
    tokens.push(token);
  }
  try {
    const reader = new Reader(tokens);
    const value = reader.comparison();
    return reader.isDone ? value : null;
  } catch {
    return null;
  }
}

class Reader {
  #at = 0;
  readonly #tokens: readonly string[];

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  get isDone(): boolean {
    return this.#at === this.#tokens.length && this.#at > 0;
  }

  comparison(): number | boolean {
    const left = this.#sum();
    const sign = this.#tokens[this.#at];
    if (sign === undefined || !/^(>=|<=|==|<|>)$/.test(sign)) return left;
    this.#at += 1;
    const right = this.#sum();
    if (sign === "==") return left === right;
    if (sign.startsWith(">")) return sign === ">" ? left > right : left >= right;
    return sign === "<" ? left < right : left <= right;
  }

  #sum(): number {
    let value = this.#product();
    for (;;) {
      if (this.#take("+")) value += this.#product();
      else if (this.#take("-")) value -= this.#product();
      else return value;
    }
  }

  #product(): number {
    let value = this.#factor();
    for (;;) {
      if (this.#take("*")) value *= this.#factor();
      else if (this.#take("/")) value /= this.#factor();
      else return value;
    }
  }

  #factor(): number {
    if (this.#take("-")) return -this.#factor();
    for (const name of ["max", "min"] as const) {
      if (!this.#take(name)) continue;
      this.#need("(");
      const values = [this.#sum()];
      while (this.#take(",")) values.push(this.#sum());
      this.#need(")");
      return Math[name](...values);
    }
    if (this.#take("(")) {
      const value = this.#sum();
      this.#need(")");
      return value;
    }
    const value = Number(this.#tokens[this.#at]);
    this.#at += 1;
    if (Number.isNaN(value)) throw new Error("expected a number");
    return value;
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }

  #need(token: string): void {
    if (!this.#take(token)) throw new Error(`expected ${token}`);
  }
}
