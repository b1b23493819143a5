import { describe, expect, it } from "vitest";
import { bytesOf, chatEvents, chatUsage, playText, textOf, observerOptions } from "./recorded.ts";
import { StreamObserver } from "../../../../../src/providers/formats/stream/observer.ts";

const DONE = "data: [DONE]\n\n";
const chunk = (fields: object): string => `data: ${JSON.stringify({ model: "m", ...fields })}\n\n`;
const delta = (content: string, index = 0): string =>
  chunk({ choices: [{ index, delta: { content }, finish_reason: null }] });
const finish = (index = 0, reason = "stop"): string =>
  chunk({ choices: [{ index, delta: {}, finish_reason: reason }] });
const usage = { prompt_tokens: 1, completion_tokens: 1 };

describe("the usage chunk", () => {
  it("is removed if the gateway requested it, and nothing else is", () => {
    const { text, outcome } = playText(chatEvents.join(""), { usageChunk: "injected" });
    expect(text).toBe(chatEvents.toSpliced(5, 1).join(""));
    expect(outcome).toMatchObject({ usage: chatUsage, complete: true });
  });

  it("is removed with its whole CRLF if a chunk ends between CR and LF", () => {
    const events = [delta("a"), finish(), chunk({ choices: [], usage }), DONE];
    const crlf = events.map((event) => event.replaceAll("\n", "\r\n"));
    const tap = new StreamObserver(observerOptions({ usageChunk: "injected" }));
    const cut = crlf.slice(0, 3).join("").length - 1;
    const bytes = bytesOf(crlf.join(""));
    const sent = [...tap.feed(bytes.slice(0, cut)), ...tap.feed(bytes.slice(cut))];
    expect(textOf(sent)).toBe(crlf.toSpliced(2, 1).join(""));
  });

  it.each(["requested", "absent"] as const)("is forwarded with its cost if it was %s", (usageChunk) => {
    const { text } = playText(chatEvents.join(""), { usageChunk });
    expect(text).toContain('"prompt_tokens_details":{"cached_tokens":8},"cost":0.029}}\n\n');
  });

  it("is forwarded with its cost if it has choices, even if the gateway requested it", () => {
    const last = chunk({ choices: [{ index: 0, delta: { content: "b" }, finish_reason: "stop" }], usage });
    const { text, outcome } = playText(delta("a") + last + DONE, { usageChunk: "injected" });
    expect(text).toBe(delta("a") + last.replace("}}\n", ',"cost":0.002}}\n') + DONE);
    expect(outcome.usage).toMatchObject({ promptTokens: 1, completionTokens: 1 });
  });

  it("is not a chunk with empty choices and no usage, like the first chunk of some servers", () => {
    const first = chunk({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] });
    const nulls = chunk({ choices: [], usage: null });
    const stream = first + nulls + delta("a") + finish() + DONE;
    expect(playText(stream, { usageChunk: "injected" }).text).toBe(stream);
  });

  it("counts as last reported if every chunk has usage", () => {
    const grows = [1, 2, 3].map((completion_tokens) =>
      chunk({ choices: [{ index: 0, delta: { content: "x" } }], usage: { prompt_tokens: 9, completion_tokens } }),
    );
    const { outcome } = playText([...grows, finish(), DONE].join(""), {});
    expect(outcome.usage).toMatchObject({ promptTokens: 9, completionTokens: 3 });
  });

  it("is ignored if its figures are impossible", () => {
    const stream = delta("a") + finish() + chunk({ choices: [], usage: { ...usage, prompt_tokens: -1 } }) + DONE;
    const { text, outcome } = playText(stream, {});
    expect([text, outcome.usage, outcome.complete]).toEqual([stream, null, true]);
  });
});

describe("the cost", () => {
  const costOf = (json: string): string => {
    const { text } = playText(`data: {"choices":[{"index":0}],"usage":${json}}\n\n`, {}, "broken");
    return text.slice(text.indexOf('"usage":') + 8, text.indexOf("}\n\n"));
  };

  it.each([
    ['{"prompt_tokens":1,"completion_tokens":1}', '{"prompt_tokens":1,"completion_tokens":1,"cost":0.002}'],
    ['{"cost":null,"prompt_tokens":1,"completion_tokens":1}', '{"cost":0.002,"prompt_tokens":1,"completion_tokens":1}'],
    [
      '{"prompt_tokens":1,"completion_tokens":1,"cost" : null }',
      '{"prompt_tokens":1,"completion_tokens":1,"cost" : 0.002 }',
    ],
    ['{ "prompt_tokens": 1, "completion_tokens": 1 }', '{ "prompt_tokens": 1, "completion_tokens": 1,"cost":0.002 }'],
    [
      '{"prompt_tokens":1,"completion_tokens":1,"x":{"cost":4}}',
      '{"prompt_tokens":1,"completion_tokens":1,"x":{"cost":4},"cost":0.002}',
    ],
    [
      '{"prompt_tokens":1,"completion_tokens":1,"x":["}\\"","\\\\"]}',
      '{"prompt_tokens":1,"completion_tokens":1,"x":["}\\"","\\\\"],"cost":0.002}',
    ],
  ])("is written into %s", (before, after) => {
    expect(costOf(before)).toBe(after);
  });

  it.each([
    '{"prompt_tokens":1,"completion_tokens":1,"cost":0.5}',
    '{"prompt_tokens":1,"completion_tokens":1,"cost":0}',
    '{"prompt_tokens":1,"completion_tokens":1,"c\\u006fst":5e-1}',
    "{}",
  ])("of the upstream's own, or none, stays in %s", (json) => {
    expect(costOf(json)).toBe(json);
  });

  it("is computed from the usage as read, the upstream's cost included", () => {
    const asked: unknown[] = [];
    const costUsdOf = (read: unknown): null => (asked.push(read), null);
    playText(chunk({ choices: [], usage: { ...usage, cost: 0.5 } }) + DONE, { costUsdOf });
    expect(asked).toEqual([
      { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: 500_000_000 },
    ]);
  });

  it("is added to the last of two usages, which is the one that parsers read", () => {
    const text =
      'data: {"usage":{"prompt_tokens":7},"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n';
    expect(playText(text + DONE, {}).text).toBe(text.replace(":1}}", ':1,"cost":0.002}}') + DONE);
  });
});

describe("a stream without [DONE]", () => {
  it("is complete if it closes after every choice has ended", () => {
    const stream = delta("a") + delta("b", 1) + finish(1) + finish(0, "length");
    const { text, outcome } = playText(stream, { usageChunk: "absent" });
    expect([text, outcome.complete, outcome.finishReason]).toEqual([stream, true, "length"]);
  });

  it("is cut short if a choice has not ended", () => {
    const stream = delta("a") + delta("b", 1) + finish(0);
    expect(playText(stream, { usageChunk: "absent" }).text).toContain('data: {"error"');
  });

  it("is cut short if it breaks, even after every choice has ended", () => {
    const { text, outcome } = playText(delta("a") + finish(), { usageChunk: "absent" }, "broken");
    expect([text.includes('data: {"error"'), outcome.complete]).toEqual([true, false]);
  });

  it("is cut short without the usage that the client requested, and whole without one that the gateway requested", () => {
    const stream = delta("a") + finish();
    expect(playText(stream, { usageChunk: "requested" }).outcome.complete).toBe(false);
    expect(playText(stream, { usageChunk: "injected" }).outcome).toMatchObject({ complete: true, usage: null });
    const whole = stream + chunk({ choices: [], usage });
    expect(playText(whole, { usageChunk: "requested" }).outcome.complete).toBe(true);
  });

  it("reads a finish reason however its JSON is spaced", () => {
    const stream = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason" : "stop"}]}\n\n';
    expect(playText(stream, { usageChunk: "absent" }).outcome).toMatchObject({ complete: true, finishReason: "stop" });
  });
});

describe("an error in a chat stream", () => {
  it.each([
    [{ error: { message: "busy", type: "server_error", param: null, code: null } }, "busy", "server_error"],
    [
      { error: { message: "no credits", code: 402 }, choices: [{ index: 0, finish_reason: "error" }] },
      "no credits",
      "402",
    ],
    [{ error: "out of memory" }, "out of memory", null],
  ])("passes and is the last thing that the client reads: %j", (json, message, code) => {
    const stream = delta("a") + chunk(json);
    for (const rest of ["", DONE]) {
      const { text, outcome } = playText(stream + rest, {});
      expect(text).toBe(stream + rest);
      expect(outcome).toMatchObject({ complete: false, error: { message, code } });
    }
  });

  it("gets a second error if clients do not throw at its form, and the stream has no [DONE]", () => {
    const flat = chunk({ object: "error", message: "engine died", code: 500 });
    const { text, outcome } = playText(delta("a") + finish() + flat, { usageChunk: "absent" });
    expect(text).toMatch(/"engine died","code":500\}\n\ndata: \{"error":\{"message":"up broke off its answer"/);
    expect(outcome).toMatchObject({ complete: false, error: { message: "engine died", code: "500" } });
  });

  it("is recorded from an event of that name with bare words", () => {
    const stream = delta("a") + "event: error\ndata: upstream reset\n\n";
    const { text, outcome } = playText(stream, {});
    expect([text, outcome.error]).toEqual([stream, { message: "upstream reset", code: null }]);
  });

  it("is recorded from a choice", () => {
    const stream = delta("a") + chunk({ choices: [{ index: 0, error: { message: "boom", code: 502 } }] }) + DONE;
    const { text, outcome } = playText(stream, {});
    expect(text).toBe(stream);
    expect(outcome).toMatchObject({ complete: false, error: { message: "boom", code: "502" } });
  });

  it("keeps the usage in the same event", () => {
    const stream = chunk({ error: { message: "late" }, choices: [], usage }) + DONE;
    const { text, outcome } = playText(stream, { usageChunk: "injected" });
    expect(text).toBe(stream.replace("}}\n", ',"cost":0.002}}\n'));
    expect(outcome).toMatchObject({ usage: { promptTokens: 1 }, complete: false });
  });

  it("is redacted by the caller before the client sees it, and no other event is", () => {
    const redact = (text: string): string => text.replaceAll("sk-secret", "[redacted]");
    const error = chunk({ error: { message: "bad key sk-secret" } });
    const { text, outcome } = playText(delta("sk-secret") + error, { redact });
    expect(text).toBe(delta("sk-secret") + error.replace("sk-secret", "[redacted]"));
    expect(outcome.error?.message).toBe("bad key sk-secret");
  });

  it("is not found in a null field, or in the model's own text", () => {
    const stream = chunk({ error: null, choices: [{ index: 0, delta: { content: '"error":{"x' } }] }) + finish() + DONE;
    expect(playText(stream, { usageChunk: "absent" }).outcome).toMatchObject({ complete: true, error: null });
  });
});
