import { describe, expect, it } from "vitest";
import { DIALECT_BATCH, parseDialectQuery } from "../../../src/contract/dialects/dialects.ts";
import { parseDialectToolCall, parseLlmBatch } from "../../../src/contract/dialects/tools.ts";
import { readBatch, readPieces } from "../../../src/contract/large-batch.ts";

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

describe("a call of another system", () => {
  it("has a depth, or none", () => {
    for (const [depth, hasDepth] of [
      [undefined, false],
      [null, false],
      [0, true],
      [-1, true],
    ]) {
      expect(parseDialectQuery({ prompt: "p", depth })).toMatchObject({ ok: true, value: { hasDepth } });
    }
  });
});

describe("a list of another system", () => {
  const talk = [{ role: "user", content: "b" }];
  const body = { depth: 1, model: null, unknown: {}, prompts: ["a", talk, "c"], max_tokens: 5 };

  it("is the same read in pieces and whole", () => {
    const whole = readBatch(bytesOf(body), DIALECT_BATCH);
    if (!whole.ok) throw new Error("refused");
    const pieces = readPieces(bytesOf(body), 1, DIALECT_BATCH);
    expect(pieces?.ok === true ? [...pieces.value.calls] : null).toEqual([...whole.value.calls]);
    expect([...whole.value.calls].map(({ body: { prompt, messages } }) => prompt ?? messages)).toEqual([
      "a",
      talk,
      "c",
    ]);
  });

  it("is nothing that /batch itself takes", () => {
    expect(readBatch(bytesOf(body)).ok).toBe(false);
    expect(readPieces(bytesOf(body), 1)).toBeNull();
  });
});

describe("llm_batch", () => {
  it("asks the texts of a list, and knows the place of each", () => {
    const call = parseDialectToolCall({ tool_name: "llm_batch", args: [[1, "a", null, "b"]] });
    const batch = call.ok ? parseLlmBatch(call.value) : call;
    expect(batch).toMatchObject({
      ok: true,
      value: { count: 4, indexes: [1, 3], request: { errorStyle: "verifiers" } },
    });
  });
});
