import { describe, expect, it } from "vitest";
import { parseBatch } from "../../../src/contract/batch.ts";
import { ITEMS_PER_BATCH_MAX, PROMPT_BYTES_MAX } from "../../../src/limits.ts";
import { expectLinear } from "../../support/growth.ts";

function accepted(value: unknown) {
  const read = parseBatch(value);
  if (!read.ok) throw new Error(JSON.stringify(read.reason));
  return read.value;
}

function refused(value: unknown) {
  const read = parseBatch(value);
  if (read.ok) throw new Error("expected a refusal");
  return read.reason;
}

const param = (value: unknown) => {
  const reason = refused(value);
  return "param" in reason ? reason.param : reason;
};

describe("a batch of prompts", () => {
  it("becomes calls in input order, and leaves the rest to the run", () => {
    const batch = accepted({ prompts: ["a", "bé"] });
    expect(batch).toMatchObject({ concurrency: null, errorStyle: null, onError: "continue" });
    expect(batch.calls.map(({ id, body, facts }) => [id, body, facts.promptBytes])).toEqual([
      [null, { prompt: "a" }, 1],
      [null, { prompt: "bé" }, 3],
    ]);
  });

  it("may be empty", () => {
    expect(accepted({ prompts: [] }).calls).toEqual([]);
    expect(accepted({ items: [] }).calls).toEqual([]);
  });

  it("gives every call the top-level fields", () => {
    const defaults = { model: "sim/echo", system: "é", max_tokens: 9, temperature: 0.5, priority: "P0", timeout_ms: 7 };
    const [call] = accepted({ prompts: ["a"], ...defaults, params: { seed: 1 } }).calls;
    expect(call?.body).toEqual({ prompt: "a", system: "é", temperature: 0.5, params: { seed: 1 } });
    expect(call?.facts).toEqual({
      promptBytes: 1 + 2 + '{"seed":1}'.length,
      messageCount: 2,
      mediaParts: 0,
      model: "sim/echo",
      maxTokens: 9,
      priority: 4,
      timeoutMs: 7,
    });
  });

  it("takes its width and its ways to fail", () => {
    expect(accepted({ prompts: [], concurrency: 4_096, error_style: "rlm", on_error: "abort" })).toMatchObject({
      concurrency: 4_096,
      errorStyle: "rlm",
      onError: "abort",
    });
    expect(accepted({ prompts: [], error_style: null }).errorStyle).toBe("null");
    expect(accepted({ prompts: [], error_style: "null" }).errorStyle).toBe("null");
  });

  it("keeps one object of facts for alike calls, and each call's own text", () => {
    const { calls } = accepted({ prompts: ["a", "b", "cc", "dd", "e"] });
    expect(calls.map(({ body }) => body.prompt)).toEqual(["a", "b", "cc", "dd", "e"]);
    expect(calls.map(({ facts }) => facts.promptBytes)).toEqual([1, 1, 2, 2, 1]);
    expect(new Set(calls.map(({ facts }) => facts)).size).toBe(2);
  });

  it("is read at up to 10,000 prompts of 2 KB in time that grows with their number and no faster", () => {
    expectLinear(10_000, (count) => {
      const prompts = Array.from({ length: count }, (_, i) => `${i}${"a".repeat(2_000)}`);
      const body: unknown = JSON.parse(JSON.stringify({ prompts }));
      return () => expect(accepted(body).calls.length).toBe(count);
    });
  });
});

describe("a batch of items", () => {
  it("lays each item's fields over the top-level ones, params entry by entry", () => {
    const { calls } = accepted({
      items: [
        { id: "a", prompt: "x", model: "m2", priority: 0, params: { seed: 2, top_k: 3 } },
        { messages: [{ role: "user", content: "y" }], system: "own" },
      ],
      model: "m1",
      system: "all",
      params: { seed: 1, stop: "." },
    });
    expect(calls.map((call) => call.id)).toEqual(["a", null]);
    expect(calls[0]?.body).toEqual({ prompt: "x", system: "all", params: { seed: 2, stop: ".", top_k: 3 } });
    expect(calls[0]?.facts).toMatchObject({ model: "m2", priority: 0 });
    expect(calls[1]?.body).toMatchObject({ system: "own", params: { seed: 1, stop: "." } });
    expect(calls[1]?.facts).toMatchObject({ model: "m1", priority: 2, messageCount: 2 });
  });

  it("names the item and the field that is wrong", () => {
    expect(param({ items: [{ prompt: "x" }, { prompt: "x", max_tokens: "9" }] })).toBe("items[1].max_tokens");
    expect(refused({ items: [{ prompt: "x", colour: 1 }] })).toMatchObject({
      message: 'unknown field "items[0].colour"; fields for the upstream belong in params',
    });
    expect(param({ items: [{}] })).toBe("items[0].prompt");
    expect(param({ items: [{ prompt: "x", messages: [] }] })).toBe("items[0].messages");
    expect(param({ items: [{ messages: [{ role: 1 }] }] })).toBe("items[0].messages[0].role");
    expect(param({ items: [{ prompt: "x", params: { n: 2 } }] })).toBe("items[0].params.n");
    expect(param({ items: ["x"] })).toBe("items[0]");
    expect(param({ items: [{ prompt: "a\0" }] })).toBe("items[0].prompt");
    expect(param({ items: [{ id: "", prompt: "a" }] })).toBe("items[0].id");
  });
});

describe("a batch that is refused", () => {
  it("has neither prompts nor items, or both", () => {
    expect(param({})).toBe("prompts");
    expect(param({ prompts: [], items: [] })).toBe("items");
  });

  it("has a field that does not exist, which is refused by name", () => {
    for (const field of ["agent", "rubric"])
      expect(refused({ prompts: [], [field]: 1 })).toMatchObject({
        message: expect.stringContaining(`unknown field "${field}"; `),
        param: field,
      });
  });

  it("holds more calls than one group may, and names the bound", () => {
    const prompts = (count: number) => Array.from({ length: count }, () => "a");
    expect(accepted({ prompts: prompts(ITEMS_PER_BATCH_MAX) }).calls.length).toBe(ITEMS_PER_BATCH_MAX);
    expect(refused({ prompts: prompts(ITEMS_PER_BATCH_MAX + 1) })).toEqual({
      reason: "invalid_request",
      param: "prompts",
      message: "prompts has 50001 calls; expected at most 50000",
    });
    expect(param({ items: prompts(ITEMS_PER_BATCH_MAX + 1) })).toBe("items");
  });

  it("holds a prompt that is no text", () => {
    expect(refused({ prompts: ["a", 5] })).toMatchObject({
      param: "prompts[1]",
      message: "prompts[1]: expected a text, received number",
    });
    expect(param({ prompts: ["a", null] })).toBe("prompts[1]");
    expect(param({ prompts: [["a"]] })).toBe("prompts[0]");
    expect(param({ prompts: "a" })).toBe("prompts");
  });

  it("holds a prompt with NUL or half a character", () => {
    expect(param({ prompts: ["a", "b", "c", "d\0"] })).toBe("prompts[3]");
    expect(param({ prompts: ["\udfff"] })).toBe("prompts[0]");
  });

  it("holds a prompt that is too large to store", () => {
    expect(refused({ prompts: ["a", "b", "c", "x".repeat(PROMPT_BYTES_MAX + 1)] })).toEqual({
      reason: "payload_too_large",
      what: "prompts[3] (1500001 bytes as JSON)",
      bytesMax: PROMPT_BYTES_MAX,
      param: "prompts[3]",
    });
  });

  it("has options outside their bounds", () => {
    expect(param({ prompts: [], concurrency: 0 })).toBe("concurrency");
    expect(param({ prompts: [], concurrency: 4_097 })).toBe("concurrency");
    expect(param({ prompts: [], error_style: "loud" })).toBe("error_style");
    expect(param({ prompts: [], on_error: "stop" })).toBe("on_error");
    expect(param({ prompts: [], params: { stream: true } })).toBe("params.stream");
  });
});
