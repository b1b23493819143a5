import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseBatch, type BatchRequest } from "../../../src/contract/batch.ts";
import { jsonOf } from "../../../src/contract/body.ts";
import { readBatch, readPieces } from "../../../src/contract/large-batch.ts";
import type { Parsed } from "../../../src/contract/errors.ts";
import { ITEMS_PER_BATCH_MAX, LARGE_BODY_BYTES_MIN } from "../../../src/limits.ts";

const encoder = new TextEncoder();

/** What the batch is when its body is read whole. */
function whole(bytes: Uint8Array): Parsed<BatchRequest> {
  const body = jsonOf(bytes);
  return body.ok ? parseBatch(body.value) : body;
}

const listed = ({ calls, ...rest }: BatchRequest) => ({ ...rest, length: calls.length, calls: [...calls] });

/** Reads a text both ways, and returns what the pieces gave; null if they gave no batch. */
function readBothWays(body: string | Uint8Array, pieceBytesMin = 1): BatchRequest | null {
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const read = whole(bytes);
  const pieces = readPieces(bytes, pieceBytesMin);
  if (pieces === null) return null;
  if (!pieces.ok) {
    expect(read.ok).toBe(false);
    return null;
  }
  if (!read.ok) throw new Error(`pieces took what is refused whole: ${JSON.stringify(read.reason)}`);
  expect(listed(pieces.value)).toEqual(listed(read.value));
  return pieces.value;
}

const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom('"', "\\", '\\"', "[", "]}", ",", "é\\", "\n"));
const settings = fc.record(
  {
    model: fc.constantFrom("m", "up/m"),
    system: text,
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    params: fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 })),
    step: fc.integer({ min: 1, max: 3 }),
  },
  { requiredKeys: [] },
);
const content = fc.oneof(
  fc.record({ prompt: text }),
  fc.record({ messages: fc.array(fc.record({ role: fc.constant("user"), content: text }), { minLength: 1 }) }),
);
const item = fc.tuple(fc.record({ id: fc.constantFrom("a", "b") }, { requiredKeys: [] }), content, settings);
const batch = fc
  .tuple(
    fc.oneof(
      fc.record({ prompts: fc.array(text) }),
      fc.record({ items: fc.array(item.map((parts): object => Object.assign({}, ...parts))) }),
    ),
    settings,
    fc.boolean(),
  )
  .map(([list, shared, first]): object => (first ? { ...list, ...shared } : { ...shared, ...list }));
const json = fc.tuple(batch, fc.constantFrom(0, 1, 2)).map(([value, indent]) => JSON.stringify(value, null, indent));
const pieceBytes = fc.constantFrom(0, 1, 7, 40, 1_000);

describe("a body read in pieces", () => {
  it(
    "is the batch that it is read whole, whatever the texts, the order of keys and the white space",
    { tags: ["slow"] },
    () => {
      let taken = 0;
      fc.assert(
        fc.property(json, pieceBytes, (body, min) => {
          const pieces = readBothWays(body, min);
          expect(pieces === null).toBe(!whole(encoder.encode(body)).ok);
          taken += pieces === null ? 0 : 1;
        }),
        { numRuns: 400 },
      );
      expect(taken).toBeGreaterThan(100);
    },
  );

  it("is never taken where it is refused whole, however it is damaged", { tags: ["slow"] }, () => {
    const damage = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat({ max: 3 }),
      put: fc.oneof(
        fc.constantFrom("", '"', "\\", ",", ",,", "[", "]", "{", "}", ":", " ", "\ufeff", "\0", "\n", "1", "null"),
        fc.constantFrom('],"prompts":["x"', '"items":[],', '"prom\\u0070ts":[],', '"prompts":1,', ",{},[]", "\\u0000"),
      ),
    });
    fc.assert(
      fc.property(json, fc.array(damage, { minLength: 1, maxLength: 3 }), pieceBytes, (body, damages, min) => {
        const broken = damages.reduce((left, { at, cut, put }) => {
          const start = Math.floor(at * left.length);
          return left.slice(0, start) + put + left.slice(start + cut);
        }, body);
        readBothWays(broken, min);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is never taken where its bytes are no UTF-8", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(json, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat({ max: 255 }), (body, at, byte) => {
        const bytes = encoder.encode(body);
        bytes[Math.floor(at * (bytes.length - 1))] = byte;
        readBothWays(bytes);
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    ["a trailing comma", '{"prompts":["a", ]}'],
    ["a comma too many", '{"prompts":["a",,"b"]}'],
    ["a byte order mark in the middle", '{"prompts":["a",\ufeff"b"]}'],
    ["brackets that do not match", '{"prompts":["a"}}'],
    ["two roots", '{"prompts":["a"]}{}'],
    ["two lists", '{"prompts":["a"],"items":[{"prompt":"a"}]}'],
    ["an end inside a text", '{"prompts":["a","b\\'],
    ["a list that is not at the top", '{"params":{"prompts":["a"]}}'],
    ["a key of the prototype", '{"__proto__":{},"prompts":["a"]}'],
  ])("is not taken with %s", (_, body) => {
    expect(readBothWays(body)).toBeNull();
    expect(whole(encoder.encode(body)).ok).toBe(false);
  });

  it.each([
    ["the list twice", '{"prompts":["a"],"prompts":["b"]}'],
    ["an escaped key", '{"prompts":["a"],"prom\\u0070ts":["b"]}'],
  ])("is left to be read whole with %s, where the last one counts", (_, body) => {
    expect(readBothWays(body)).toBeNull();
    const read = readBatch(encoder.encode(body));
    expect(read.ok && [...read.value.calls].map((call) => call.body)).toEqual([{ prompt: "b" }]);
  });

  it.each([
    ["a byte order mark before it", '\ufeff{"prompts":["a"]}'],
    ["a list that an earlier key of its name gives way to", '{"prompts":1,"prompts":["a"]}'],
    ["no calls", '{"prompts":[ \n ]}'],
    ["brackets and quotes in texts", '{"system":"[{\\"","prompts":["]}","\\\\","\\""],"model":"m"}'],
  ])("is taken with %s", (_, body) => {
    expect(readBothWays(body)).not.toBeNull();
  });

  it("may be read as often as one likes", () => {
    const pieces = readBothWays('{"items":[{"id":"x","prompt":"a"},{"prompt":"b"}]}');
    expect(pieces?.ids).toEqual(["x", null]);
    expect([...(pieces?.calls ?? [])]).toEqual([...(pieces?.calls ?? [])]);
  });

  it("may hold as many calls as a batch may, and not one more", () => {
    const of = (count: number) => encoder.encode(JSON.stringify({ prompts: Array.from({ length: count }, () => "a") }));
    const read = readPieces(of(ITEMS_PER_BATCH_MAX), 1_000);
    expect(read?.ok === true && read.value.calls.length).toBe(ITEMS_PER_BATCH_MAX);
    expect(readPieces(of(ITEMS_PER_BATCH_MAX + 1), 1_000)).toBeNull();
  });
});

describe("a large body", () => {
  const padded = (last: unknown) =>
    encoder.encode(JSON.stringify({ prompts: ["a".repeat(LARGE_BODY_BYTES_MIN), "b", last] }));

  it("becomes the calls that a small one would", () => {
    const read = readBatch(padded("c"));
    expect(read.ok && [...read.value.calls].slice(1).map(({ body }) => body)).toEqual([
      { prompt: "b" },
      { prompt: "c" },
    ]);
  });

  it("is refused in the words for a small one", () => {
    expect(readBatch(padded(7))).toMatchObject({ ok: false, reason: { param: "prompts[2]" } });
    expect(readBatch(padded("c").subarray(0, -1))).toMatchObject({
      ok: false,
      reason: { message: expect.stringContaining(`(byte ${padded("c").length - 1})`) },
    });
  });

  it("says that a call of it has labels, its own or those of all", () => {
    const hasLabels = (body: object) => readBothWays(JSON.stringify(body))?.hasLabels;
    expect(hasLabels({ items: [{ prompt: "a" }, { prompt: "b", step: 2 }] })).toBe(true);
    expect(hasLabels({ prompts: ["a", "b"], step: 2 })).toBe(true);
    expect(hasLabels({ items: [{ prompt: "a" }, { prompt: "b" }], steps: 2 })).toBeUndefined();
  });

  it(
    "is refused at its first call that is refused, with its place, however many values it has",
    { tags: ["slow"] },
    () => {
      const unit = { id: "a", prompt: "p", max_tokens: 1, priority: "low", tier: "P1", timeout_ms: 1 };
      const items = (fault: object) => [...Array.from({ length: 30_000 }, () => unit), { ...unit, ...fault }];
      const read = (fault: object) => readBatch(encoder.encode(JSON.stringify({ items: items(fault) })));
      expect(read({}).ok).toBe(true);
      expect(read({ max_tokens: 0 })).toMatchObject({ ok: false, reason: { param: "items[30000].max_tokens" } });
      expect(read({ promt: "x" })).toMatchObject({ ok: false, reason: { param: "items[30000].promt" } });
    },
  );

  it("is scanned once, even where it is made to be slow: a scan that looked back would not end in time", () => {
    for (const unit of ["[", '"', "\\", '"\\', '{"a":', ",", '["prompts":[', '\\\\"']) {
      const bytes = encoder.encode(`{"prompts":[${unit.repeat(4_000_000 / unit.length)}`);
      expect(readPieces(bytes, 32_768)).toBeNull();
    }
  });
});
