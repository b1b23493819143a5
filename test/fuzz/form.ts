/** Multipart bodies: their parts in any order, twice, missing, or cut where a reader expects more. */
import type { Random } from "../../bench/adversary/random.ts";
import { bentJson } from "./json.ts";
import type { Schema } from "./document.ts";
import { hostileText } from "./texts.ts";
import { valueFor, type Source } from "./values.ts";

const BOUNDARIES = [
  "boundary",
  "b",
  "----WebKitFormBoundary7MA4YWxkTrZu0gW",
  "x".repeat(70),
  "a'()+_,-./:=?b",
] as const;

/** A form with the fields of a schema. A field of bytes is a file. */
export function formOf(schema: Schema, source: Source): { type: string; bytes: Uint8Array } {
  const { random } = source;
  const boundary = random.pick(BOUNDARIES);
  const fields = Object.entries(propertiesOf(schema));
  const parts = fields.map(([name, field]) => partOf(name, field, source));
  const kept = random.chance(0.5) ? parts : parts.filter(() => random.chance(0.8));
  const shuffled = random.chance(0.5) ? kept : kept.toSorted(() => random.fraction() - 0.5);
  const all = random.chance(0.1) ? [...shuffled, ...shuffled] : shuffled;
  const text = all.map((part) => `--${boundary}\r\n${part}\r\n`).join("");
  const end = random.chance(0.9) ? `--${boundary}--\r\n` : random.pick(["", `--${boundary}`, `--${boundary}--`, "--"]);
  const whole = bent(random.chance(0.05) ? `preamble\r\n${text}${end}` : text + end, random);
  const shown = random.chance(0.95) ? boundary : random.pick(["", "other", "x".repeat(200), '"quoted']);
  return {
    type: `multipart/form-data; boundary=${random.chance(0.5) ? `"${shown}"` : shown}`,
    bytes: Buffer.from(whole, "latin1"),
  };
}

function propertiesOf(schema: Schema): Record<string, Schema> {
  const found = schema["properties"];
  return typeof found === "object" && found !== null ? { ...found } : {};
}

const FILE_NAMES = [
  "lines.jsonl",
  "",
  "../../../etc/passwd",
  'a"; name="purpose',
  "a\r\nx-injected: 1",
  "a\0b.jsonl",
  "\xff\xfe",
  "n".repeat(10_000),
  "C:\\lines.jsonl",
] as const;

const LINE = { custom_id: "a", method: "POST", url: "/v1/chat/completions", body: { model: "sim/echo", messages: [] } };

function partOf(name: string, field: Schema, source: Source): string {
  const { random } = source;
  if (field["format"] === "binary") {
    const lines = Array.from({ length: random.integer(0, 4) }, () => bentJson(LINE, random));
    const joined = lines.join(random.pick(["\n", "\r\n", "\n\n", "\ufeff\n"]));
    const head = `content-disposition: form-data; name="${name}"; filename="${random.pick(FILE_NAMES)}"`;
    return `${head}\r\ncontent-type: ${random.pick(["application/jsonl", "text/plain", "x"])}\r\n\r\n${latin1(joined)}`;
  }
  const value = random.chance(0.8) ? String(valueFor(field, source, name)) : hostileText(random);
  const shown = random.chance(0.95) ? name : random.pick([`${name}[]`, "", "__proto__", "file", "a".repeat(9_000)]);
  return `content-disposition: form-data; name="${shown}"\r\n\r\n${latin1(value)}`;
}

/** UTF-8 as the letters of its bytes, so that all of a form is written the same way. */
function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function bent(text: string, random: Random): string {
  if (random.chance(0.8)) return text;
  const at = random.integer(0, text.length);
  const kind = random.weighted([
    ["cut", 40],
    ["feeds", 20],
    ["insert", 30],
    ["header", 10],
  ]);
  if (kind === "cut") return text.slice(0, at);
  if (kind === "feeds") return text.replaceAll("\r\n", "\n");
  if (kind === "header")
    return text.replace("\r\n\r\n", `\r\nx: ${"y".repeat(random.pick([100, 20_000, 300_000]))}\r\n\r\n`);
  return text.slice(0, at) + random.pick(["\0", "\r\n--", "\r\n\r\n", "--", "\xff"]) + text.slice(at);
}
