import { describe, expect, it } from "vitest";
import { MODELS_BYTES_MAX, NAME_CHARS_MAX } from "../../../src/limits.ts";
import { modelsRequest, plainNames, readModels } from "../../../src/providers/models.ts";
import { KEY, makeAnthropic, makeUpstream } from "./make.ts";

const upstream = makeUpstream();
const listOf = (...data: unknown[]): string => JSON.stringify({ object: "list", data });

describe("modelsRequest", () => {
  it("asks in the upstream's protocol, with its key and its configured headers", () => {
    expect(modelsRequest(makeUpstream({ headers: { "x-org": "o" } }))).toEqual({
      url: "https://acme.test/v1/models",
      headers: { accept: "application/json", authorization: `Bearer ${KEY}`, "x-org": "o" },
    });
    expect(modelsRequest(makeAnthropic())).toEqual({
      url: "https://acme.test/v1/models?limit=1000",
      headers: { accept: "application/json", "anthropic-version": "2023-06-01", "x-api-key": KEY },
    });
  });

  it("sends no key where none is configured, and asks no simulated upstream", () => {
    expect(modelsRequest(makeUpstream({ apiKey: null }))?.headers).toEqual({ accept: "application/json" });
    expect(modelsRequest(makeAnthropic({ apiKey: null }))?.headers).not.toHaveProperty("x-api-key");
    expect(modelsRequest(makeUpstream({ kind: "simulated" }))).toBeNull();
  });
});

describe("readModels", () => {
  it("keeps id and time of those that the patterns allow, in their order", () => {
    const text = listOf(
      { id: "gpt-b", created: 1_763_712_000, owned_by: "acme", extra: [1] },
      { id: "whisper", created: 1 },
      { id: "gpt-a" },
      { id: "gpt-c", created: 12.9 },
    );
    expect(readModels(text, makeUpstream({ models: ["gpt-*"] }))).toEqual([
      { id: "gpt-b", created: 1_763_712_000 },
      { id: "gpt-a", created: 0 },
      { id: "gpt-c", created: 12 },
    ]);
    expect(readModels(text, makeUpstream({ models: [] }))).toEqual([]);
  });

  it.each([
    "",
    "<html>",
    "null",
    "[]",
    "{}",
    '{"data":null}',
    '{"data":{}}',
    '{"error":{"message":"no"}}',
    '{"data":[{"id":"a"}',
  ])("reads nothing from %s", (text) => {
    expect(readModels(text, upstream)).toEqual([]);
  });

  it("leaves out one model that is none, and keeps the others", () => {
    const hostile = [null, 1, "a", {}, { id: 1 }, { id: "" }, { id: "x".repeat(NAME_CHARS_MAX + 1) }];
    expect(readModels(listOf({ id: "a" }, ...hostile, { id: "b" }), upstream).map(({ id }) => id)).toEqual(["a", "b"]);
    const longest = "x".repeat(NAME_CHARS_MAX);
    expect(readModels(listOf({ id: longest }), upstream)).toEqual([{ id: longest, created: 0 }]);
  });

  it("reads a time that is none as unknown", () => {
    const times = ["2026-01-01T00:00:00Z", null, -5, 1e300, {}];
    const read = readModels(listOf(...times.map((created, at) => ({ id: `m${at}`, created }))), upstream);
    expect(read).toEqual(times.map((_, at) => ({ id: `m${at}`, created: 0 })));
    for (const { created } of read) expect(() => new Date(created * 1_000).toISOString()).not.toThrow();
  });

  it("leaves out names that could not be asked for: control characters, halves of characters", () => {
    expect(readModels(listOf({ id: "a\nb" }, { id: "\ud800" }, { id: "a\u0000" }, { id: "ok" }), upstream)).toEqual([
      { id: "ok", created: 0 },
    ]);
  });

  it("reads a list of the largest size, and nothing of one that is a character longer", () => {
    const text = listOf({ id: "a" });
    expect(readModels(text.padEnd(MODELS_BYTES_MAX), upstream)).toHaveLength(1);
    expect(readModels(text.padEnd(MODELS_BYTES_MAX + 1), upstream)).toEqual([]);
  });

  it("is not confused by names that objects have", () => {
    const text = '{"data":[{"id":"__proto__","created":1},{"id":"constructor"}],"__proto__":{"data":[]}}';
    expect(readModels(text, upstream).map(({ id }) => id)).toEqual(["__proto__", "constructor"]);
  });
});

describe("plainNames", () => {
  it("are those without a pattern", () => {
    expect(plainNames(makeUpstream({ models: ["gpt-*", "gpt-x", "*", "a/b"] }))).toEqual(["gpt-x", "a/b"]);
  });
});
