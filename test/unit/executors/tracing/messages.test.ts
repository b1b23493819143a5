import { describe, expect, it } from "vitest";
import { inputJson, instructionsJson, outputJson } from "../../../../src/executors/tracing/messages.ts";
import { OTLP_CONTENT_CHARS_MAX, OTLP_CONTENT_PART_CHARS } from "../../../../src/limits.ts";

const text = (content: string) => ({ type: "text", content });
const read = (json: string | null): unknown => (json === null ? null : JSON.parse(json));

describe("what a call asks, as OpenTelemetry's messages", () => {
  it.each([
    ["a prompt", { prompt: "hi" }, [{ role: "user", parts: [text("hi")] }]],
    ["an input", { input: "hi" }, [{ role: "user", parts: [text("hi")] }]],
    [
      "messages with tool calls",
      {
        messages: [
          { role: "user", content: "hi" },
          { role: "assistant", content: null, tool_calls: [{ function: { name: "f", arguments: "{}" } }] },
          { role: "tool", content: [{ type: "text", text: "42" }] },
        ],
      },
      [
        { role: "user", parts: [text("hi")] },
        { role: "assistant", parts: [{ type: "tool_call", name: "f", arguments: "{}" }] },
        { role: "tool", parts: [text("42")] },
      ],
    ],
    [
      "an image, of which only the type is told",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:secret" } }] }] },
      [{ role: "user", parts: [{ type: "image_url" }] }],
    ],
    ["what is no message", { messages: [1, null, "hi"] }, [{ role: "user", parts: [text("hi")] }]],
    ["nothing", {}, null],
  ])("has %s", (_, asked, expected) => {
    expect(read(inputJson(asked))).toEqual(expected);
  });

  it("has its instructions apart, as text or as blocks", () => {
    expect(read(instructionsJson({ system: "be brief" }))).toEqual([text("be brief")]);
    expect(read(instructionsJson({ system: [{ type: "text", text: "be brief" }] }))).toEqual([text("be brief")]);
    expect(read(instructionsJson({ instructions: "be brief" }))).toEqual([text("be brief")]);
    expect(instructionsJson({ prompt: "hi" })).toBeNull();
  });

  it("keeps the newest messages, and of the first that does not fit the beginning", () => {
    const newest = "n".repeat(OTLP_CONTENT_CHARS_MAX - OTLP_CONTENT_PART_CHARS - 2);
    const messages = ["left out", "older", newest].map((content) => ({ role: "user", content }));
    expect(read(inputJson({ messages }))).toEqual([
      { role: "user", parts: [text("ol…")] },
      { role: "user", parts: [text(newest)] },
    ]);
  });

  it("holds a whole text at its bound, and cuts one above it between characters", () => {
    const whole = "w".repeat(OTLP_CONTENT_CHARS_MAX);
    expect(read(outputJson({ text: whole }, "stop"))).toEqual([
      { role: "assistant", parts: [text(whole)], finish_reason: "stop" },
    ]);
    const above = `${"w".repeat(OTLP_CONTENT_CHARS_MAX - 1)}\u{1f600}`;
    expect(read(outputJson({ text: above }, null))).toEqual([
      { role: "assistant", parts: [text(`${"w".repeat(OTLP_CONTENT_CHARS_MAX - 1)}\ufffd…`)] },
    ]);
  });

  it("has the calls of tools and the thoughts of an answer, which are the first to be cut", () => {
    const call = (args: string) => ({ id: "c", type: "function", function: { name: "f", arguments: args } });
    const called = (args: string) => ({ type: "tool_call", name: "f", arguments: args });
    const both = { role: "assistant", tool_calls: [call("{}"), call("[]")], reasoning_content: "why" };
    const thought = { type: "reasoning", content: "why" };
    const shown = (parts: unknown[]) => [{ role: "assistant", parts, finish_reason: "tool_calls" }];
    expect(read(outputJson({ text: "", message: both }, "tool_calls"))).toEqual(
      shown([thought, called("{}"), called("[]")]),
    );
    expect(read(outputJson({ text: "so", message: both }, "tool_calls"))).toEqual(
      shown([thought, text("so"), called("{}"), called("[]")]),
    );
    const long = "w".repeat(OTLP_CONTENT_CHARS_MAX);
    expect(read(outputJson({ text: long, message: both }, "tool_calls"))).toEqual(shown([text(long)]));
    expect(read(outputJson({ text: "so", message: { reasoning: "why" } }, null))).toEqual([
      { role: "assistant", parts: [thought, text("so")] },
    ]);
  });

  it("bounds messages without a text, and parts without one", () => {
    const empty = Array.from({ length: 10_000 }, () => ({ type: "text", text: "" }));
    const most = OTLP_CONTENT_CHARS_MAX / OTLP_CONTENT_PART_CHARS;
    const byMessage = read(inputJson({ messages: empty.map((part) => ({ role: "user", content: [part] })) }));
    expect(byMessage).toHaveLength(most);
    const byPart = read(inputJson({ messages: [{ role: "user", content: empty }] }));
    expect(byPart).toMatchObject([{ parts: { length: most } }]);
    const bare = read(inputJson({ messages: Array.from({ length: 10_000 }, () => ({ role: "user" })) }));
    expect(Array.isArray(bare) ? bare.length : 0).toBeLessThanOrEqual(most);
  });
});
