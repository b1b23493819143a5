import { describe, expect, it } from "vitest";
import { TEXT_HEAD_CHARS } from "../../../../../src/limits.ts";
import { cutText, headOf } from "../../../../../src/providers/formats/request/prompt-head.ts";

const user = (content: unknown) => ({ role: "user", content });

describe("the beginning of what a call asks", () => {
  it.each([
    ["a prompt", { prompt: "p", messages: [user("m")] }, "p"],
    ["the last message with a text", { messages: [user("first"), user("last"), user([{ type: "image" }])] }, "last"],
    [
      "the texts of its parts",
      { messages: [user([{ type: "text", text: "a" }, { type: "image" }, { text: "b" }])] },
      "a\nb",
    ],
    ["nothing of messages without a text", { messages: [user(7), null, "x"] }, null],
    ["the messages of a whole body", { raw: { json: '{"messages":[{"role":"user","content":"raw"}]}' } }, "raw"],
    ["its prompt", { raw: { json: '{"prompt":"raw prompt"}' } }, "raw prompt"],
    ["its input", { raw: { json: '{"input":[{"role":"user","content":[{"type":"input_text","text":"in"}]}]}' } }, "in"],
    ["nothing of a body without any", { raw: { json: '{"prompt":[1,2]}' } }, null],
    ["nothing of an empty call", {}, null],
  ])("is %s", (_, call, head) => {
    expect(headOf(call)).toBe(head);
  });

  it("has a bound, and cuts no character into halves", () => {
    const whole = "x".repeat(TEXT_HEAD_CHARS);
    expect(cutText(whole)).toBe(whole);
    expect(cutText(`${whole}y`)).toBe(`${whole}…`);
    const face = "\u{1F600}";
    expect(cutText(`${"x".repeat(TEXT_HEAD_CHARS - 1)}${face}z`)).toBe(`${"x".repeat(TEXT_HEAD_CHARS - 1)}…`);
  });
});
