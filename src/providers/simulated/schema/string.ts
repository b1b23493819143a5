/** Strings that follow the length and format of a schema, made of the words of a prompt. */
import { promptHash } from "../hash.ts";
import type { Schema } from "./join.ts";

/** A text of at most this many characters is given whole; of a longer one, some words. */
const WHOLE_MAX = 80;
const WORDS = 8;
/** Longest string that `minLength` can ask for. */
const LENGTH_MAX = 100_000;

const DAY_MS = 86_400_000;
/** Dates are within ten years after this one. */
const FIRST_DAY_MS = Date.UTC(2020, 0, 1);

/** `seed` differs between places of one value. Null = a length or format that it cannot follow. */
export function stringOf(schema: Schema, { text, seed }: { text: string; seed: string }): string | null {
  const { minLength, maxLength, format } = schema;
  const least = typeof minLength === "number" ? minLength : 0;
  const most = typeof maxLength === "number" ? maxLength : Infinity;
  if (least > most || least > LENGTH_MAX) return null;
  const hash = promptHash(seed);
  const formatted = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format]?.(hash) : undefined;
  if (formatted !== undefined) return formatted.length < least || formatted.length > most ? null : formatted;
  return fitted(wordsOf(text, hash), least, most);
}

/** Formats that clients of structured outputs check; another one is an annotation. */
const FORMATS: Readonly<Record<string, (hash: number) => string>> = {
  date: (hash) => instant(hash).slice(0, 10),
  "date-time": instant,
  time: (hash) => instant(hash).slice(11),
  duration: (hash) => `PT${(hash % 59) + 1}M`,
  email: (hash) => `user${hash % 1_000}@example.com`,
  hostname: (hash) => `host${hash % 1_000}.example.com`,
  ipv4: (hash) => `192.0.2.${hash % 256}`,
  ipv6: (hash) => `2001:db8::${(hash % 0xffff).toString(16)}`,
  uri: (hash) => `https://example.com/${hash % 1_000}`,
  uuid: (hash) => `${hash.toString(16).padStart(8, "0")}-0000-4000-8000-${String(hash).padStart(12, "0")}`,
};

function instant(hash: number): string {
  const day = FIRST_DAY_MS + (hash % 3_650) * DAY_MS;
  return new Date(day + (hash % 86_400) * 1_000).toISOString().replace(".000", "");
}

/** A long text gives words from a place that the hash selects, so that the strings of one value differ. */
function wordsOf(text: string, hash: number): string {
  if (text.length <= WHOLE_MAX) return text;
  const words = text.split(/\s+/).filter((word) => word !== "" && word.length <= WHOLE_MAX);
  if (words.length <= WORDS) return words.length === 0 ? text.slice(0, WHOLE_MAX).toWellFormed() : words.join(" ");
  const from = hash % (words.length - WORDS + 1);
  return words.slice(from, from + WORDS).join(" ");
}

/** Lengths count characters, not UTF-16 code units. */
function fitted(text: string, least: number, most: number): string {
  const base = text === "" && least > 0 ? "text" : text;
  const { length } = Array.from(base);
  if (length >= least && length <= most) return base;
  const end = length > most ? most : least;
  return Array.from(base.repeat(Math.ceil(end / length)))
    .slice(0, end)
    .join("");
}
