import { describe, expect, it } from "vitest";
import { messagesEvents, playText, responsesEvents } from "./recorded.ts";

const event = (fields: { type: string }): string => `event: ${fields.type}\ndata: ${JSON.stringify(fields)}\n\n`;
const free = { costUsdOf: () => null };

describe("a Responses stream", () => {
  const options = { family: "responses", ...free } as const;
  const begun = responsesEvents.slice(0, 4).join("");
  const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };

  it("ends incomplete with usage and the reason", () => {
    const incomplete_details = { reason: "max_output_tokens" };
    const response = { status: "incomplete", incomplete_details, usage };
    const stream = begun + event({ type: "response.incomplete", ...{ sequence_number: 4, response } });
    const { text, outcome } = playText(stream, options);
    expect(text).toBe(stream);
    expect(outcome).toMatchObject({
      complete: true,
      finishReason: "max_output_tokens",
      usage: { completionTokens: 2 },
    });
  });

  it("ends failed with its error, whose key is redacted, and its usage", () => {
    const response = { status: "failed", error: { code: "server_error", message: "sk-1 died" }, usage };
    const stream = begun + event({ type: "response.failed", ...{ sequence_number: 4, response } });
    const redact = (text: string): string => text.replace("sk-1", "it");
    const { text, outcome } = playText(stream, { family: "responses", redact });
    expect(text).toBe(stream.replace("sk-1", "it").replace('"total_tokens":5', '"total_tokens":5,"cost":0.005'));
    const error = { code: "server_error", message: "sk-1 died" };
    expect(outcome).toMatchObject({ complete: true, finishReason: "failed", error, usage: { promptTokens: 3 } });
  });

  it.each([
    [
      { type: "error", code: "rate_limit_exceeded", message: "slow down", param: null, sequence_number: 4 },
      "rate_limit_exceeded",
    ],
    [{ type: "error", error: { type: "overloaded", message: "slow down" } }, "overloaded"],
  ])("forwards an error event and adds none: %j", (error, code) => {
    const { text, outcome } = playText(begun + event(error), options, "broken");
    expect(text).toBe(begun + event(error));
    expect(outcome).toMatchObject({ complete: false, usage: null, error: { message: "slow down", code } });
  });

  it("is cut short if only a [DONE] ends it", () => {
    const { text } = playText(`${begun}data: [DONE]\n\n`, options);
    expect(text).toContain("event: error\n");
  });

  it("forwards a [DONE] after its end", () => {
    const stream = `${responsesEvents.join("")}data: [DONE]\n\n`;
    expect(playText(stream, options).text).toBe(stream);
  });

  it("numbers the error event after the last event, or counts events without numbers", () => {
    expect(playText(begun, options).text).toContain('"sequence_number":4}');
    const bare = begun.replaceAll(/"sequence_number":\d,/g, "");
    expect(playText(bare, options).text).toContain('"sequence_number":4}');
    expect(playText("", options).text).toContain('"sequence_number":0}');
  });

  it.each(["event: response.completed\n", ""])(
    "is complete with an end too large to read, headed %j, but has no usage",
    (head) => {
      const last = (responsesEvents[5] ?? "").replace("event: response.completed\n", head);
      const { text, outcome } = playText(begun + last, { family: "responses", eventBytesMax: 350 });
      expect(text).toBe(begun + last);
      expect(outcome).toMatchObject({ complete: true, usage: null, finishReason: null });
    },
  );

  it("is cut short within a last event too large to read, of which the client has a part", () => {
    const cut = begun + (responsesEvents[5] ?? "").slice(0, 400);
    const { text, outcome } = playText(cut, { family: "responses", eventBytesMax: 350 });
    expect(text.startsWith(`${cut}\n\nevent: error\n`)).toBe(true);
    expect(outcome.complete).toBe(false);
  });

  it("numbers the error event after an event too large to read", () => {
    const large = event({ type: "response.output_text.delta", ...{ sequence_number: 4, delta: "x".repeat(400) } });
    const { text } = playText(begun + large, { family: "responses", eventBytesMax: 350 });
    expect(text).toContain('"sequence_number":5}');
  });

  it("does not take an event too large to read for the last one because it quotes it", () => {
    const quote = event({
      type: "response.output_text.delta",
      ...{ delta: `"type":"response.completed"${"x".repeat(400)}` },
    });
    const { outcome } = playText(begun + quote, { family: "responses", eventBytesMax: 350 });
    expect(outcome.complete).toBe(false);
  });
});

describe("an Anthropic stream", () => {
  const options = { family: "messages", ...free } as const;
  const begun = messagesEvents.slice(0, 5).join("");
  const stop = event({ type: "message_stop" });
  const delta = (usage: object | null): string =>
    event({ type: "message_delta", ...{ delta: { stop_reason: "max_tokens" }, usage } });

  it("reads the counts of its last event as totals that replace those of its start", () => {
    const usage = { input_tokens: 30, cache_read_input_tokens: 9, cache_creation_input_tokens: null, output_tokens: 4 };
    const { outcome } = playText(begun + delta({ output_tokens: 2 }) + delta(usage) + stop, options);
    expect(outcome.usage).toEqual({
      promptTokens: 46,
      cachedTokens: 9,
      cacheWriteTokens: 7,
      completionTokens: 4,
      reasoningTokens: 0,
      costNanoUsd: null,
    });
  });

  it("reports no usage if only its start did, which has no final counts", () => {
    const { outcome } = playText(begun + delta(null) + stop, options);
    expect(outcome).toMatchObject({ usage: null, complete: true, finishReason: "max_tokens" });
  });

  it("forwards an error event and adds none", () => {
    const error = event({ type: "error", ...{ error: { type: "overloaded_error", message: "Overloaded" } } });
    const { text, outcome } = playText(begun + error, options);
    expect(text).toBe(begun + error);
    expect(outcome).toMatchObject({ complete: false, error: { message: "Overloaded", code: "overloaded_error" } });
  });

  it("gets an error event after an error without that name, which its clients ignore", () => {
    const { text } = playText(`${begun}data: {"error":{"message":"lost"}}\n\n`, options);
    expect(text).toMatch(/"lost"\}\}\n\nevent: error\ndata: \{"type":"error"/);
  });

  it("counts thinking and the arguments of calls", () => {
    const piece = (fields: object): string => event({ type: "content_block_delta", ...{ delta: fields } });
    const stream = piece({ thinking: "hm" }) + piece({ partial_json: '{"a":' }) + piece({ signature: "xxxx" });
    expect(playText(stream, options).outcome.contentBytes).toBe(7);
  });
});
