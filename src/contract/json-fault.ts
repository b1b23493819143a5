/**
 * Where a text stops being JSON. `JSON.parse` names no place for most faults and quotes the text in others, so this
 * reads the text again, only after it failed: one pass, no recursion, no copies.
 */

type Container = "object" | "array";
/** What may stand next, in the words of the message. */
type Expect =
  | "a value"
  | "a value or ]"
  | "a key in double quotes"
  | "a key in double quotes or }"
  | ":"
  | ", or }"
  | ", or ]"
  | "the end";

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;

/** Says what was expected and at which line and column (from 1), quoting one character at most. */
export function jsonFault(text: string): string {
  const { at, expected } = findFault(text);
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const found = at >= text.length ? "the text ended" : `found ${JSON.stringify(text.charAt(at))}`;
  return `is not JSON: ${found} at line ${line}, column ${column} (position ${at}), expected ${expected}`;
}

function findFault(text: string): { at: number; expected: string } {
  const open: Container[] = [];
  let expect: Expect = "a value";
  let at = skipSpace(text, 0);
  while (at < text.length) {
    const char = text.charAt(at);
    let read: Read = { end: at + 1, fault: null };
    if (isCloser(char, expect)) {
      open.pop();
      expect = afterValue(open);
    } else if (expect.startsWith("a value")) {
      if (char === "{" || char === "[") {
        open.push(char === "{" ? "object" : "array");
        expect = char === "{" ? "a key in double quotes or }" : "a value or ]";
      } else {
        read = scalarEnd(text, at, expect);
        expect = afterValue(open);
      }
    } else if (expect.startsWith("a key") && char === '"') {
      read = stringEnd(text, at);
      expect = ":";
    } else if (char === ":" && expect === ":") {
      expect = "a value";
    } else if (char === "," && expect.startsWith(",")) {
      expect = expect === ", or }" ? "a key in double quotes" : "a value";
    } else {
      return { at, expected: expect };
    }
    if (read.fault !== null) return read.fault;
    at = skipSpace(text, read.end);
  }
  return { at: text.length, expected: expect };
}

function isCloser(char: string, expect: Expect): boolean {
  return (char === "}" || char === "]") && expect.endsWith(`or ${char}`);
}

function afterValue(open: readonly Container[]): Expect {
  const container = open.at(-1);
  if (container === undefined) return "the end";
  return container === "object" ? ", or }" : ", or ]";
}

type Read = { end: number; fault: null } | { end: number; fault: { at: number; expected: string } };

function scalarEnd(text: string, at: number, expect: Expect): Read {
  if (text.charAt(at) === '"') return stringEnd(text, at);
  for (const pattern of [NUMBER, WORD]) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) return { end: at + found[0].length, fault: null };
  }
  return { end: at, fault: { at, expected: expect } };
}

function stringEnd(text: string, start: number): Read {
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return { end: at + 1, fault: null };
    if (code < 0x20) return { end: at, fault: { at, expected: "control characters in texts to be escaped" } };
    if (code !== 0x5c) continue;
    const escape = text.charAt(at + 1);
    const valid = escape === "u" ? /^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6)) : '"\\/bfnrt'.includes(escape);
    if (!valid && at + 1 < text.length)
      return { end: at, fault: { at, expected: "a valid escape after the backslash" } };
    at += escape === "u" ? 5 : 1;
  }
  return { end: text.length, fault: { at: text.length, expected: 'a closing "' } };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text.charAt(at))) at += 1;
  return at;
}
