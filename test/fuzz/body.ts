/** Bodies of hostile requests: of the right content type or of another one, whole or broken, compressed or said to be. */
import * as fc from "fast-check";
import { gzipSync } from "node:zlib";
import type { Random } from "../../bench/adversary/random.ts";
import { honestBodies, ROUTES, type RecordedBody } from "../support/honest-bodies/read.ts";
import type { Body, Operation, Schema } from "./document.ts";
import { formOf } from "./form.ts";
import { bentJson } from "./json.ts";
import { drawnFrom, hostileText } from "./texts.ts";
import { valueFor, type Source } from "./values.ts";

export type DrawnBody = {
  /** The header; null = none. */
  type: string | null;
  /** `content-encoding`; null = none. */
  encoding: string | null;
  bytes: Uint8Array;
};

const WRONG_TYPES = [
  "text/plain",
  "application/xml",
  "multipart/form-data",
  "multipart/form-data; boundary=",
  "application/x-www-form-urlencoded",
  "application/json; charset=utf-16",
  "application/json;;;",
  "APPLICATION/JSON",
  "application/vnd.api+json",
  "text/x-llmcompiler",
  "application/x-ndjson",
  "application/octet-stream",
  "x",
  "/",
  `application/${"j".repeat(3_000)}`,
] as const;

/** A body for an operation; one whose document names none gets one, too. */
export function drawBody({ path, bodies }: Operation, source: Source): DrawnBody {
  const { random } = source;
  const recorded = RECORDED.get(path.replace("/rollout/{id}", "")) ?? [];
  const asked = bodies.length > 0 ? random.pick(bodies) : { type: "application/json", schema: {} };
  const { type, bytes } =
    recorded.length > 0 && random.chance(0.5)
      ? recordedContent(random.pick(recorded), source)
      : contentOf(asked, source);
  const shown = random.chance(0.1) ? (random.chance(0.2) ? null : random.pick(WRONG_TYPES)) : type;
  const broken = random.chance(0.12) ? brokenBytes(bytes, random) : bytes;
  return random.chance(0.06) ? encoded(shown, broken, random) : { type: shown, encoding: null, bytes: broken };
}

/** Bodies that programs in the field send, by path. */
const RECORDED: ReadonlyMap<string, readonly RecordedBody[]> = Map.groupBy(
  honestBodies(),
  ({ family }) => ROUTES[family],
);

/** A recorded body for a model that exists here. */
function recordedContent({ body }: RecordedBody, { random, words }: Source): { type: string; bytes: Uint8Array } {
  const value = "model" in body ? { ...body, model: random.pick(words.get("model") ?? []) } : body;
  return { type: "application/json", bytes: Buffer.from(bentJson(value, random)) };
}

function contentOf({ type, schema }: Body, source: Source): { type: string; bytes: Uint8Array } {
  if (type.startsWith("multipart/")) return formOf(schema, source);
  const text = type === "application/json" ? jsonFor(schema, source) : textFor(type, source);
  return { type, bytes: Buffer.from(text) };
}

function jsonFor(schema: Schema, source: Source): string {
  return bentJson(valueFor(schema, source), source.random);
}

/** Lines, plans and prompts. */
function textFor(type: string, { random }: Source): string {
  if (type === "text/plain") return hostileText(random);
  const line = type.includes("ndjson") ? () => bentJson(random.pick(LINES), random) : () => random.pick(STEPS);
  const lines = Array.from({ length: random.integer(0, 12) }, () =>
    random.chance(0.1) ? hostileText(random) : line(),
  );
  const text = lines.join(random.pick(["\n", "\n", "\r\n", "\r", "\n\n", "\u2028"] as const));
  return random.chance(0.5) ? `${text}\n` : text;
}

/** A task of a graph, an end of a plan, an exchange of a tape. */
const LINES = [
  { id: "a", prompt: "one" },
  { id: "b", prompt: "{{a.output}}", dependencies: ["a"] },
  { id: "c", prompt: "x", foreach: "a", max_items: 3 },
  { id: "a", prompt: "again" },
  { op: "add", task: { id: "d", prompt: "x" } },
  { custom_id: "a", method: "POST", url: "/v1/chat/completions", body: { model: "sim/echo", messages: [] } },
  { request: { model: "sim/echo", messages: [] }, response: { status: 200, body: "x" } },
] as const;

const STEPS = [
  '1. search("one")',
  '2. math("$1 - $2")',
  "3. join()",
  "<END_OF_PLAN>",
  "Thought: none",
  '99999999999999999999. f("x")',
  '1. search("',
  "4. f($1, $2, $3, $4)",
  "-1. f()",
] as const;

function brokenBytes(bytes: Uint8Array, random: Random): Uint8Array {
  const at = random.integer(0, bytes.length);
  const kind = random.weighted([
    ["bom", 20],
    ["insert", 35],
    ["utf16", 10],
    ["crlf", 10],
    ["any", 10],
    ["empty", 10],
    ["cut", 5],
  ]);
  if (kind === "bom") return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
  if (kind === "utf16") return Buffer.from(`\ufeff${Buffer.from(bytes).toString()}`, "utf16le");
  if (kind === "crlf") return Buffer.from(Buffer.from(bytes).toString("latin1").replaceAll(",", ",\r\n"), "latin1");
  if (kind === "any") return drawnFrom(fc.uint8Array({ maxLength: 300 }), random);
  if (kind === "empty") return new Uint8Array();
  if (kind === "cut") return bytes.subarray(0, at);
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(random.pick(INVALID_UTF8)), bytes.subarray(at)]);
}

/** A byte that begins nothing, an overlong slash, half a surrogate, a code point beyond the last, an unfinished character, NUL. */
const INVALID_UTF8 = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82], [0]] as const;

/** So many zeros are 64 KB compressed. */
const BOMB_BYTES = 64 * 1024 * 1024;
let bomb: Uint8Array | null = null;
const TEXT_BOMB_BYTES = 8 * 1024 * 1024;
let textBomb: Uint8Array | null = null;

/** A body that is compressed, that only claims it, or that is far larger than it looks. */
function encoded(type: string | null, bytes: Uint8Array, random: Random): DrawnBody {
  const kind = random.weighted([
    ["honest", 30],
    ["bomb", 20],
    ["text-bomb", 15],
    ["claim", 20],
    ["cut", 15],
  ]);
  const encoding = kind === "claim" ? random.pick(["gzip", "br", "deflate", "gzip, gzip", "zstd", "x", ""]) : "gzip";
  if (kind === "claim") return { type, encoding, bytes };
  if (kind === "bomb") return { type, encoding, bytes: (bomb ??= gzipSync(Buffer.alloc(BOMB_BYTES))) };
  if (kind === "text-bomb") {
    textBomb ??= gzipSync(`{"prompt":"${"a".repeat(TEXT_BOMB_BYTES)}"}`);
    return { type, encoding, bytes: textBomb };
  }
  const packed = gzipSync(bytes);
  return { type, encoding, bytes: kind === "cut" ? packed.subarray(0, packed.length - 6) : packed };
}
