/** Short prompts of a batch: they share facts, and each is read as it would be alone. */
import { describe, expect, it } from "vitest";
import { parseBatch, type BatchCall } from "../../../src/contract/batch.ts";
import { readPieces } from "../../../src/contract/large-batch.ts";
import type { Parsed } from "../../../src/contract/errors.ts";
import { PLAIN_PROMPT_CHARS_MAX, PREFIX_BYTES_MIN, TEXT_LOOK_BYTES_MIN } from "../../../src/limits.ts";
import { seeded } from "../../support/engine.ts";

type Options = Record<string, unknown>;

const SPLIT = { by: "chars", size: 1_000 };
/** What a batch may say beside its prompts, and how its calls differ from plain ones by it. */
const OPTIONS: readonly (readonly [what: string, options: Options])[] = [
  ["nothing", {}],
  ["a model and a cap", { model: "up/m", max_tokens: 9, priority: "P0", timeout_ms: 7 }],
  ["a system message", { system: "é\u0301" }],
  ["a long system message, whose beginning is cached", { system: "s".repeat(PREFIX_BYTES_MIN) }],
  ["params with facts of their own", { params: { seed: 1, n: 2, stop: "x".repeat(50) } }],
  ["a schema", { schema: { type: "object", properties: { a: { type: "string" } } } }],
  ["a stored text", { context: "ctx_1" }],
  ["a chunk of a stored text", { context: { id: "ctx_1", split: SPLIT, chunk: 3 } }],
];

/** Texts of equal length that differ in what is measured of them, and at the bounds. */
const TEXTS: readonly string[] = [
  "",
  "a",
  "b",
  "é",
  "\u0301",
  "\0",
  "\ud800",
  "\n",
  "ab",
  "😀",
  "a\0",
  "abcdef",
  "abcdeé",
  "x".repeat(PLAIN_PROMPT_CHARS_MAX),
  `${"x".repeat(PLAIN_PROMPT_CHARS_MAX - 1)}é`,
  "x".repeat(PLAIN_PROMPT_CHARS_MAX + 1),
  "the quick brown fox ".repeat(TEXT_LOOK_BYTES_MIN / 20 + 1),
];

function one(prompt: unknown, options: Options): Parsed<BatchCall | undefined> {
  const read = parseBatch({ ...options, prompts: [prompt] });
  return read.ok ? { ok: true, value: read.value.calls[0] } : read;
}

/** The refusal of a call at another place of its list. */
const moved = (refused: unknown, index: number): unknown =>
  JSON.parse(JSON.stringify(refused).replaceAll("prompts[0]", `prompts[${index}]`));

describe("short prompts of a batch", () => {
  it("of equal length have one object of facts, in whatever order they come", () => {
    const lengths = [3, 1, 2];
    const prompts = Array.from({ length: 3_000 }, (_, at) => "abc".slice(0, lengths[at % 3]));
    const read = parseBatch({ prompts });
    if (!read.ok) throw new Error("expected a batch");
    expect(read.value.calls.map(({ facts }) => facts.promptBytes)).toEqual(prompts.map(({ length }) => length));
    expect(new Set(read.value.calls.map(({ facts }) => facts)).size).toBe(lengths.length);
  });

  it("share them in a batch that is read in pieces, too", () => {
    const prompts = Array.from({ length: 300 }, (_, at) => "abc".slice(0, 1 + (at % 3)));
    const read = readPieces(new TextEncoder().encode(JSON.stringify({ prompts })), 64);
    if (read?.ok !== true) throw new Error("expected a batch");
    const facts = Array.from(read.value.calls, (call) => call.facts);
    expect(facts.map(({ promptBytes }) => promptBytes)).toEqual(prompts.map(({ length }) => length));
    expect(new Set(facts).size).toBe(3);
  });

  it.each(OPTIONS)("are each read as it is alone, with %s", (_, options) => {
    const random = seeded(26);
    const each = TEXTS.map((text) => one(text, options));
    for (let round = 0; round < 60; round++) {
      const places = Array.from({ length: 12 }, () => Math.floor(random() * TEXTS.length));
      const prompts = places.map((place) => TEXTS[place]);
      const alone = places.map((place) => each[place] ?? one(null, options));
      const read = parseBatch({ ...options, prompts });
      const refused = alone.findIndex(({ ok }) => !ok);
      if (refused >= 0) expect(read).toEqual(moved(alone[refused], refused));
      else if (!read.ok) expect(read).toBeNull();
      else expect(read.value.calls).toEqual(alone.map((call) => call.ok && call.value));
    }
  });

  it("may be refused behind others of their length", () => {
    const reasonOf = (prompts: readonly unknown[]) => {
      const read = parseBatch({ prompts });
      return read.ok ? null : read.reason;
    };
    expect(reasonOf(["a", "b", "\0"])).toMatchObject({ param: "prompts[2]" });
    expect(reasonOf(["a", "\ud800"])).toMatchObject({ param: "prompts[1]" });
    expect(reasonOf(["a", 1])).toMatchObject({ param: "prompts[1]" });
  });
});
