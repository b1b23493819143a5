/**
 * References in prompts: `{{id.output}}`, `{{id.output.json.path}}`, `{{id.outputs}}`, `{{item}}`, `{{item.path}}`, `$1`, `${1}`.
 * A text is scanned once, from left to right. What has another form is ordinary text: `{{user}}`, `$HOME`, `$1.50`.
 */
import type { JsonPath } from "./types.ts";

/** `path` null = the text itself. `isShort`: spelled `$1` or `${1}`, which is text unless a task has this number as its id. */
export type TaskReference = { kind: "task"; task: string; every: boolean; path: JsonPath | null; isShort: boolean };
/** The element of a `foreach` task. */
export type ItemReference = { kind: "item"; path: JsonPath | null };
export type Reference = TaskReference | ItemReference;

/** A reference in a text: from `start` to before `end`. */
export type Token = { start: number; end: number; reference: Reference };

/** Characters of a task's id. Those with a meaning in references are not among them. */
export const TASK_ID = /^[\p{L}\p{N}_:/-]+$/u;

/**
 * Double braces around anything without braces and spaces, or a dollar with a number. All digits belong to the number, and a
 * number that continues as a decimal (`$1.50`, `$1,000`) is an amount of money.
 */
const TOKEN = /\{\{[ \t]{0,4}([^{}\s]+)[ \t]{0,4}\}\}|\$(?:(\d+)(?!\d|\.\d|,\d{3})|\{(\d+)\})/gu;
const TASK_PART = /^([\p{L}\p{N}_:/-]+)\.(?:(outputs)|output(?:\.json(.*))?)$/u;
const ITEM_PART = /^item(?:([.[].*))?$/;
/** No task may have this id: `{{item.output}}` is a field of an element. */
export const ITEM_NAME = "item";
const PATH_STEP = /\.([^.[\]]+)|\[(\d+)\]/gy;

/** The references of a text, in order. */
export function* tokensOf(text: string): Generator<Token> {
  for (const match of text.matchAll(TOKEN)) {
    const [whole, braced, plain, curly] = match;
    const reference = braced === undefined ? shortReference(plain ?? curly ?? "") : bracedReference(braced);
    if (reference !== null) yield { start: match.index, end: match.index + whole.length, reference };
  }
}

/** The one reference that a text consists of; null if it is anything else. */
export function referenceOf(text: string): Reference | null {
  const [token] = tokensOf(text);
  return token !== undefined && token.start === 0 && token.end === text.length ? token.reference : null;
}

function shortReference(task: string): TaskReference {
  return { kind: "task", task, every: false, path: null, isShort: true };
}

function bracedReference(inner: string): Reference | null {
  const item = ITEM_PART.exec(inner);
  if (item !== null) {
    const path = item[1] === undefined ? null : pathOf(item[1]);
    return path === undefined ? null : { kind: "item", path };
  }
  const task = TASK_PART.exec(inner);
  if (task === null) return null;
  const [, id = "", outputs, steps] = task;
  const path = steps === undefined ? null : pathOf(steps);
  if (path === undefined) return null;
  return { kind: "task", task: id, every: outputs !== undefined, path, isShort: false };
}

/** Reads `.items[0].name` and `.items.0.name`; undefined if it is not such a path. A step of digits is an index in an array. */
function pathOf(steps: string): JsonPath | undefined {
  const path: (string | number)[] = [];
  PATH_STEP.lastIndex = 0;
  let at = 0;
  while (at < steps.length) {
    const step = PATH_STEP.exec(steps);
    if (step === null) return undefined;
    const [whole, name, index] = step;
    path.push(name ?? Number(index));
    at += whole.length;
  }
  return path;
}

/** The part of a JSON value at a path; undefined if there is none. Inherited properties are no parts. */
export function partAt(value: unknown, path: JsonPath): unknown {
  let part = value;
  for (const step of path) {
    if (typeof part !== "object" || part === null) return undefined;
    part = Object.getOwnPropertyDescriptor(part, step)?.value;
  }
  return part;
}

/** A path as an error names it: `.items[0].name`. */
export function pathText(path: JsonPath): string {
  return path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
}
