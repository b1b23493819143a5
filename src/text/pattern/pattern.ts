/**
 * Regular expressions of clients, matched in time linear in the text. The runtime's engine backtracks: a hostile pattern
 * (`(a+)+$`) would hold an object for hours. This one keeps the set of all states that the text so far can lead to.
 */
import { PATTERN_CHARS_MAX, PATTERN_STATES_MAX, PATTERN_STEPS_MAX } from "../../limits.ts";
import { parsePattern, type Assertion, type Node } from "./parse.ts";

type Test = (char: string) => boolean;

/** A step of the program: to `next`, by reading a character, by an assertion, or without either; `other` too, if it forks. */
type State = { test: Test | null; assert: Assertion | null; next: number; other: number };

/** The state in which a text has matched. */
const MATCHED = -1;
const NONE = -2;

export type Compiled = { ok: true; pattern: Pattern } | { ok: false; message: string };

/** Compiles a pattern in JavaScript's `u` syntax, or says why not. `flags`: `i`, `s`, both or neither. */
export function compilePattern(source: string, flags = ""): Compiled {
  if (source.length > PATTERN_CHARS_MAX) {
    return { ok: false, message: `expected a pattern of at most ${PATTERN_CHARS_MAX} characters` };
  }
  try {
    void new RegExp(source, `u${flags}`);
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : "expected a regular expression" };
  }
  const tree = parsePattern(source);
  if ("unsupported" in tree) return { ok: false, message: `${tree.unsupported} is not supported in patterns` };
  if (sizeOf(tree) > PATTERN_STATES_MAX) {
    return { ok: false, message: `is too large: its repetitions make more than ${PATTERN_STATES_MAX} states` };
  }
  return { ok: true, pattern: new Pattern(tree, flags) };
}

/** States of a tree, without building them: `{1000000}` is a short source. */
function sizeOf(node: Node): number {
  switch (node.kind) {
    case "char":
    case "assert":
      return 1;
    case "sequence":
      return node.parts.reduce((sum, part) => sum + sizeOf(part), 0);
    case "choice":
      return node.options.reduce((sum, option) => sum + 1 + sizeOf(option), 0);
    case "repeat": {
      const copies = node.max === Infinity ? node.min + 1 : node.max;
      // Nothing repeated is still walked once a copy.
      return copies * (sizeOf(node.node) + 1);
    }
  }
}

export class Pattern {
  readonly #states: State[] = [];
  readonly #first: number;
  readonly #flags: string;
  readonly #tests = new Map<string, Test>();

  /** Use `compilePattern`, which checks the tree. */
  constructor(tree: Node, flags: string) {
    this.#flags = flags;
    this.#first = this.#build(tree, MATCHED);
  }

  /** States that the pattern has. */
  get states(): number {
    return this.#states.length;
  }

  /** Whether the pattern matches anywhere in the text; null = that took more than PATTERN_STEPS_MAX steps, so nobody knows. */
  test(text: string): boolean | null {
    return this.match(text, PATTERN_STEPS_MAX).isFound;
  }

  /** The same within so many steps, and how many it took: for many texts that have a bound together. */
  match(text: string, stepsMax: number): { isFound: boolean | null; steps: number } {
    const run = new Run(this.#states, this.#first);
    let before = "";
    for (const char of text) {
      if (run.enter(before, char)) return { isFound: true, steps: run.steps };
      run.read(char);
      if (run.steps > stepsMax) return { isFound: null, steps: run.steps };
      before = char;
    }
    return { isFound: run.enter(before, ""), steps: run.steps };
  }

  #build(node: Node, next: number): number {
    switch (node.kind) {
      case "char":
        return this.#add({ test: this.#testOf(node.source), assert: null, next, other: NONE });
      case "assert":
        return this.#add({ test: null, assert: node.what, next, other: NONE });
      case "sequence":
        return node.parts.reduceRight((after, part) => this.#build(part, after), next);
      case "choice":
        return node.options
          .map((option) => this.#build(option, next))
          .reduceRight((other, entry) => this.#add({ test: null, assert: null, next: entry, other }));
      case "repeat":
        return this.#buildRepeat(node, next);
    }
  }

  #buildRepeat({ node, min, max }: Extract<Node, { kind: "repeat" }>, next: number): number {
    let entry = next;
    if (max === Infinity) {
      const fork: State = { test: null, assert: null, next: NONE, other: next };
      entry = this.#add(fork);
      fork.next = this.#build(node, entry);
    } else {
      for (let copy = min; copy < max; copy++) {
        entry = this.#add({ test: null, assert: null, next: this.#build(node, entry), other: next });
      }
    }
    for (let copy = 0; copy < min; copy++) entry = this.#build(node, entry);
    return entry;
  }

  #add(state: State): number {
    return this.#states.push(state) - 1;
  }

  /** Equal sources share one test, which remembers its verdict on ASCII. */
  #testOf(source: string): Test {
    const known = this.#tests.get(source);
    if (known !== undefined) return known;
    const one = new RegExp(`^(?:${source})$`, `u${this.#flags}`);
    const verdicts: (boolean | undefined)[] = Array.from({ length: 128 });
    const test: Test = (char) => {
      const code = char.codePointAt(0) ?? 0;
      if (code >= 128) return one.test(char);
      return (verdicts[code] ??= one.test(char));
    };
    this.#tests.set(source, test);
    return test;
  }
}

/** One text's way through a program: the states that wait for its next character. */
class Run {
  readonly #states: readonly State[];
  readonly #first: number;
  /** The position at which a state was last entered: none is entered twice at one. */
  readonly #enteredAt: Int32Array;
  #position = 0;
  #arrived: number[] = [];
  #waiting: number[] = [];
  steps = 0;

  constructor(states: readonly State[], first: number) {
    this.#states = states;
    this.#first = first;
    this.#enteredAt = new Int32Array(states.length).fill(-1);
  }

  /** Follows every way that reads nothing, from the states that were reached and from the beginning. True: one has matched. */
  enter(before: string, after: string): boolean {
    this.#waiting = [];
    const open = [...this.#arrived, this.#first];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (id === MATCHED) return true;
      const state = this.#states[id];
      if (state === undefined || this.#enteredAt[id] === this.#position) continue;
      this.#enteredAt[id] = this.#position;
      this.steps += 1;
      if (state.test !== null) this.#waiting.push(id);
      else if (state.assert === null || holds(state.assert, before, after)) {
        open.push(state.next);
        if (state.other !== NONE) open.push(state.other);
      }
    }
    this.#position += 1;
    return false;
  }

  read(char: string): void {
    this.#arrived = [];
    for (const id of this.#waiting) {
      const state = this.#states[id];
      if (state?.test?.(char) === true) this.#arrived.push(state.next);
    }
  }
}

function holds(assertion: Assertion, before: string, after: string): boolean {
  switch (assertion) {
    case "start":
      return before === "";
    case "end":
      return after === "";
    case "boundary":
      return isWordChar(before) !== isWordChar(after);
    case "inside":
      return isWordChar(before) === isWordChar(after);
  }
}

function isWordChar(char: string): boolean {
  return /^\w$/.test(char);
}
