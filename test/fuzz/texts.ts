/** Texts, names and numbers that break programs which did not expect them. */
import * as fc from "fast-check";
import type { Random } from "../../bench/adversary/random.ts";

/** A draw of fast-check that the seed repeats. */
export function drawnFrom<T>(arbitrary: fc.Arbitrary<T>, random: Random): T {
  const [value] = fc.sample(arbitrary, { seed: random.integer(0, 2 ** 31 - 1), numRuns: 1 });
  if (value === undefined) throw new Error("fast-check drew nothing");
  return value;
}

/** Names of members that objects inherit, that JSON allows and that no schema has. */
export const NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "toJSON",
  "valueOf",
  "",
  "\0",
  "\ud800",
  "a".repeat(5_000),
  "length",
  "$ref",
] as const;

const TEXTS = [
  "",
  "\0",
  "a\0b",
  "\ud800",
  "\udfff\ud800",
  "\ufeff",
  "\u2028\u2029",
  "\r\n",
  "a\r\nset-cookie: a=b",
  "\u001b[2J",
  "../../etc/passwd",
  "..%2f..%2fetc%2fpasswd",
  "file:///etc/passwd",
  "http://127.0.0.1/",
  "http://169.254.169.254/latest/meta-data/",
  "http://[::ffff:127.0.0.1]/",
  "http://0x7f.1/",
  "'; DROP TABLE slots;--",
  "{{a.output}}{{b.output}}{{__proto__}}",
  "${1+1}",
  "(a+)+$",
  "(".repeat(500),
  "<script>alert(1)</script>",
  "%s%n%x",
  "NaN",
  "null",
  "-1",
  "1e309",
  "9".repeat(400),
  "pg-1-a",
  "ctx_00000000000000000000000000000000",
  "é",
  "🏴‍☠️".repeat(50),
  "x".repeat(20_000),
] as const;

/** A text: one of those that are known to hurt, or any at all. */
export function hostileText(random: Random): string {
  if (random.chance(0.7)) return random.pick(TEXTS);
  return drawnFrom(fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), fc.webUrl()), random);
}

/** JSON as text: numbers of every spelling, and values of every type. Some is not JSON. */
const SPELLINGS = [
  "-0",
  "-0.0",
  "0e99999",
  "1e309",
  "-1e309",
  "1e-400",
  "9007199254740993",
  "18446744073709551616",
  "-9223372036854775809",
  "0.1e1",
  "1E+2",
  "2.5",
  "-1",
  "0",
  "1".repeat(400),
  `0.${"0".repeat(400)}1`,
  "null",
  "true",
  "[]",
  "{}",
  '""',
  "[null]",
  '{"__proto__":{"polluted":true}}',
  '{"length":4294967295}',
  '"\\ud800"',
  '"\\u0000"',
  "01",
  ".5",
  "1.",
  "+1",
  "NaN",
  "-Infinity",
  "0x10",
  "1n",
  "'a'",
  "undefined",
  '"\\x41"',
  '"a\nb"',
  '"\\u12"',
  "[1,]",
  '{"a":1,}',
  "{a:1}",
  "/**/1",
  "",
] as const;

/** Levels of nesting: below the gateway's bound, just above it, and far above. */
const DEPTHS = [20, 63, 64, 65, 200, 20_000, 200_000] as const;

/** The spelling of one value. */
export function hostileSpelling(random: Random): string {
  const kind = random.weighted([
    ["list", 50],
    ["text", 25],
    ["deep", 8],
    ["many", 4],
    ["drawn", 13],
  ]);
  if (kind === "list") return random.pick(SPELLINGS);
  if (kind === "text") return JSON.stringify(hostileText(random));
  if (kind === "drawn") return drawnFrom(fc.json(), random);
  if (kind === "many") return `[${Array.from({ length: random.integer(100, 3_000) }, () => "0").join(",")}]`;
  const depth = random.pick(DEPTHS);
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
    ['[{"items":', "}]"],
  ] as const);
  // Half of them never close.
  return open.repeat(depth) + (random.chance(0.5) ? `1${close.repeat(depth)}` : "");
}
