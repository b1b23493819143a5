import { describe, expect, it } from "vitest";
import { parsePromptText, parseQuery } from "../../../src/contract/query.ts";
import { JSON_DEPTH_MAX, MAX_TOKENS_MAX, PARAMS_ENTRIES_MAX, PROMPT_BYTES_MAX } from "../../../src/limits.ts";

function accepted(value: unknown) {
  const read = parseQuery(value);
  if (!read.ok) throw new Error(JSON.stringify(read.reason));
  return read.value;
}

function refused(value: unknown) {
  const read = parseQuery(value);
  if (read.ok) throw new Error("expected a refusal");
  return read.reason;
}

const param = (value: unknown) => {
  const reason = refused(value);
  return "param" in reason ? reason.param : reason;
};

describe("a query that is accepted", () => {
  it("needs no more than a prompt", () => {
    expect(accepted({ prompt: "héllo" })).toEqual({
      body: { prompt: "héllo" },
      facts: {
        promptBytes: 6,
        messageCount: 1,
        mediaParts: 0,
        model: null,
        maxTokens: null,
        priority: 2,
        timeoutMs: null,
        isBare: true,
      },
      deadlineMs: null,
      onLost: "retry",
      dedupe: false,
    });
  });

  it("may say what becomes of it when its outcome is unknown, and whether it shares an equal call's answer", () => {
    expect(accepted({ prompt: "a", on_lost: "fail", dedupe: true })).toMatchObject({ onLost: "fail", dedupe: true });
    expect(accepted({ prompt: "a", on_lost: "retry" })).toMatchObject({ onLost: "retry" });
    expect(param({ prompt: "a", on_lost: "ignore" })).toBe("on_lost");
    expect(param({ prompt: "a", dedupe: "yes" })).toBe("dedupe");
  });

  it("may be queued for as long as its deadline says, within a day", () => {
    expect(accepted({ prompt: "a", deadline_ms: 86_400_000 }).deadlineMs).toBe(86_400_000);
    expect(refused({ prompt: "a", deadline_ms: 86_400_001 })).toMatchObject({ param: "deadline_ms" });
    expect(refused({ prompt: "a", deadline_ms: 0 })).toMatchObject({ param: "deadline_ms" });
  });

  it("counts the bytes of the system text and of params as JSON, and the system message", () => {
    const call = accepted({ prompt: "abc", system: "é", params: { seed: 7 }, temperature: 0 });
    expect(call.body).toEqual({ prompt: "abc", system: "é", params: { seed: 7 }, temperature: 0 });
    expect(call.facts).toMatchObject({ promptBytes: 3 + 2 + '{"seed":7}'.length, messageCount: 2 });
  });

  it("says that its one message is a user's text and that no field can change the template around it, if that is so", () => {
    const user = [{ role: "user", content: "a" }];
    const shaped = [{ messages: user }, { prompt: "a", params: { seed: 7 } }];
    const others = [{ prompt: "a", system: "b" }, { messages: [...user, ...user] }];
    for (const call of [...shaped, ...others]) expect(accepted(call).facts).not.toHaveProperty("isBare");
    for (const call of [{ prompt: "a" }, { prompt: "a", temperature: 0 }])
      expect(accepted(call).facts).toMatchObject({ messageCount: 1, isBare: true });
  });

  it("passes messages on unchanged and counts them as JSON, media apart", () => {
    const image = { type: "image_url", image_url: { url: "data:x" } };
    const messages = [
      { role: "user", content: [{ type: "text", text: "é" }, image] },
      { role: "assistant", content: null, tool_calls: [{ id: "1" }] },
      { role: "assistant", tool_calls: [] },
      { role: "tool", content: "42", name: "t" },
    ];
    const call = accepted({ messages });
    expect(call.body).toEqual({ messages });
    const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
    expect(call.facts.promptBytes).toBe(bytes(messages) - bytes(image.image_url.url));
    expect(call.facts).toMatchObject({ messageCount: 4, mediaParts: 1 });
  });

  it("hands model, cap, time limit and urgency to dispatch", () => {
    const { facts } = accepted({ prompt: "x", model: "sim/echo", max_tokens: 16, timeout_ms: 1, priority: "high" });
    expect(facts).toMatchObject({ model: "sim/echo", maxTokens: 16, timeoutMs: 1, priority: 3 });
  });

  it("knows each name of a priority", () => {
    const names = ["critical", "high", "normal", "medium", "low", "background", "P0", "P1", "P2", 4, 3, 2, 1, 0];
    const numbers = names.map((priority) => accepted({ prompt: "x", priority }).facts.priority);
    expect(numbers).toEqual([4, 3, 2, 2, 1, 0, 4, 3, 2, 4, 3, 2, 1, 0]);
  });

  it("may be the bare text of its prompt", () => {
    expect(parsePromptText("hi")).toMatchObject({ ok: true, value: { body: { prompt: "hi" } } });
    expect(parsePromptText("")).toMatchObject({ ok: false, reason: { reason: "invalid_request", param: null } });
    expect(parsePromptText("a\0b")).toMatchObject({ ok: false, reason: { param: "prompt" } });
  });
});

describe("a query that is refused names the field", () => {
  it("when it is no object", () => {
    expect(refused([])).toEqual({
      reason: "invalid_request",
      message: "the body: expected a JSON object, received an array",
      param: null,
    });
    expect(refused("x")).toMatchObject({ message: "the body: expected a JSON object, received a text" });
  });

  it("when a field is unknown", () => {
    expect(refused({ prompt: "x", temprature: 1 })).toEqual({
      reason: "invalid_request",
      message: 'unknown field "temprature"; did you mean temperature?',
      param: "temprature",
    });
    expect(param(JSON.parse('{"prompt":"x","__proto__":1}'))).toBe("__proto__");
  });

  it("when it has a prompt and messages, or neither", () => {
    expect(param({ prompt: "x", messages: [{ role: "user", content: "x" }] })).toBe("messages");
    expect(refused({})).toMatchObject({ param: "prompt", message: expect.stringContaining("is missing") });
  });

  it("when a value has the wrong type or lies outside its bounds", () => {
    expect(refused({ prompt: 7 })).toMatchObject({
      param: "prompt",
      message: "prompt: expected a text, received a number",
    });
    expect(refused({ prompt: ["a", "b"] })).toMatchObject({
      param: "prompt",
      message: "prompt: expected a text; several are `prompts` of POST /batch, and a conversation is `messages`",
    });
    expect(param({ prompt: "x", max_tokens: 0 })).toBe("max_tokens");
    expect(param({ prompt: "x", max_tokens: 1.5 })).toBe("max_tokens");
    expect(param({ prompt: "x", max_tokens: MAX_TOKENS_MAX + 1 })).toBe("max_tokens");
    expect(accepted({ prompt: "x", max_tokens: MAX_TOKENS_MAX }).facts.maxTokens).toBe(MAX_TOKENS_MAX);
    expect(param({ prompt: "x", temperature: JSON.parse("1e999") })).toBe("temperature");
    expect(param({ prompt: "x", temperature: -0.1 })).toBe("temperature");
    expect(param({ prompt: "x", timeout_ms: 0 })).toBe("timeout_ms");
    expect(param({ prompt: "x", model: "" })).toBe("model");
    expect(param({ prompt: "x", model: "a\nb" })).toBe("model");
    expect(param({ prompt: "x", params: [] })).toBe("params");
  });

  it("when a priority is unknown, with the names that are known", () => {
    for (const priority of ["urgent", "P3", 5, -1, 1.5, null]) {
      const reason = refused({ prompt: "x", priority });
      expect(reason).toMatchObject({ param: "priority", message: expect.stringContaining("background") });
    }
  });

  it("when a text holds NUL or half a character", () => {
    expect(refused({ prompt: "a\0b" })).toMatchObject({ param: "prompt", message: expect.stringContaining("index 1") });
    expect(refused({ prompt: "\ud800" })).toMatchObject({ message: expect.stringContaining("lone surrogate") });
    expect(param({ prompt: "x", system: "\udc00" })).toBe("system");
    expect(accepted({ prompt: "😀" }).facts.promptBytes).toBe(4);
    expect(param({ messages: [{ role: "user", content: "a\0" }] })).toBe("messages[0].content");
    const parts = [
      { type: "text", text: "ok" },
      { type: "text", text: "\ud800" },
    ];
    expect(param({ messages: [{ role: "user", content: parts }] })).toBe("messages[0].content[1].text");
  });

  it("when a message is not one", () => {
    expect(param({ messages: {} })).toBe("messages");
    expect(param({ messages: [] })).toBe("messages");
    expect(param({ messages: [{ role: "user" }, "hi"] })).toBe("messages[1]");
    expect(param({ messages: [null] })).toBe("messages[0]");
    expect(param({ messages: [{ content: "x" }] })).toBe("messages[0].role");
    expect(param({ messages: [{ role: "", content: "x" }] })).toBe("messages[0].role");
    expect(param({ messages: [{ role: "user", content: 7 }] })).toBe("messages[0].content");
  });

  it("when params would change what is paid for", () => {
    expect(refused({ prompt: "x", params: { n: 5 } })).toMatchObject({
      reason: "invalid_request",
      param: "params.n",
      message: expect.stringContaining("params.n"),
    });
    expect(param({ prompt: "x", params: { stream: true } })).toBe("params.stream");
  });

  it("when params are too many", () => {
    const params = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, i]));
    expect(accepted({ prompt: "x", params: params(PARAMS_ENTRIES_MAX) }).body.params).toHaveProperty("p63");
    expect(param({ prompt: "x", params: params(PARAMS_ENTRIES_MAX + 1) })).toBe("params");
  });

  it("when params or messages are nested without end", () => {
    const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    // The params object is a level itself; so are the list of messages and the message.
    expect(accepted({ prompt: "x", params: { a: nested(JSON_DEPTH_MAX - 1) } }).body.prompt).toBe("x");
    expect(param({ prompt: "x", params: { a: nested(JSON_DEPTH_MAX) } })).toBe("params");
    expect(param({ prompt: "x", params: { a: nested(1_000_000) } })).toBe("params");
    expect(accepted({ messages: [{ role: "user", x: nested(JSON_DEPTH_MAX - 2) }] }).facts.messageCount).toBe(1);
    expect(param({ messages: [{ role: "user", x: nested(JSON_DEPTH_MAX - 1) }] })).toBe("messages");
  });
});

describe("the size of one call", () => {
  const tooLarge = (field: string) => ({ reason: "payload_too_large", param: field, bytesMax: PROMPT_BYTES_MAX });

  it("is bounded for a prompt, at the byte", () => {
    expect(accepted({ prompt: "a".repeat(PROMPT_BYTES_MAX) }).facts.promptBytes).toBe(PROMPT_BYTES_MAX);
    expect(refused({ prompt: "a".repeat(PROMPT_BYTES_MAX + 1) })).toMatchObject(tooLarge("prompt"));
    expect(accepted({ prompt: "é".repeat(PROMPT_BYTES_MAX / 2) }).facts.promptBytes).toBe(PROMPT_BYTES_MAX);
    expect(refused({ prompt: `${"é".repeat(PROMPT_BYTES_MAX / 2)}a` })).toMatchObject(tooLarge("prompt"));
    expect(refused({ prompt: "x".repeat(5_000_000) })).toMatchObject(tooLarge("prompt"));
  });

  it("counts what escapes take in the stored row", () => {
    const escaped = "\u0001".repeat(PROMPT_BYTES_MAX / 6);
    expect(accepted({ prompt: escaped }).facts.promptBytes).toBe(PROMPT_BYTES_MAX / 6);
    expect(refused({ prompt: `${escaped}\u0001` })).toMatchObject(tooLarge("prompt"));
  });

  it("counts the system text and params too", () => {
    const prompt = "a".repeat(PROMPT_BYTES_MAX - 3);
    expect(accepted({ prompt, system: "abc" }).facts.promptBytes).toBe(PROMPT_BYTES_MAX);
    expect(refused({ prompt, system: "abcd" })).toMatchObject(tooLarge("prompt"));
    expect(refused({ prompt: "x", params: { stop: "a".repeat(PROMPT_BYTES_MAX) } })).toMatchObject(tooLarge("prompt"));
  });

  it("is bounded for messages as JSON", () => {
    const frame = JSON.stringify([{ role: "user", content: "" }]).length;
    const of = (bytes: number) => [{ role: "user", content: "a".repeat(bytes - frame) }];
    expect(accepted({ messages: of(PROMPT_BYTES_MAX) }).facts.promptBytes).toBe(PROMPT_BYTES_MAX);
    expect(refused({ messages: of(PROMPT_BYTES_MAX + 1) })).toMatchObject(tooLarge("messages"));
  });
});
