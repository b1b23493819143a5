import { describe, expect, it } from "vitest";
import { votedText } from "../../../../src/run/answers/voted-text.ts";

const calling = (...calls: { id: string; name: string; args: string }[]) => ({
  text: "",
  parts: {
    message: JSON.stringify({
      role: "assistant",
      content: null,
      tool_calls: calls.map(({ id, name, args }) => ({ id, type: "function", function: { name, arguments: args } })),
    }),
  },
});

describe("what an answer votes with", () => {
  it("is its text", () => {
    expect(votedText({ text: "a", parts: { message: '{"reasoning":"b"}' } })).toBe("a");
    expect(votedText({ text: "" })).toBe("");
    expect(votedText({ text: "", parts: { message: '{"reasoning":"b"}' } })).toBe("");
  });

  it("is the calls of an answer without text, whatever their ids and the order of their keys", () => {
    const one = votedText(calling({ id: "1", name: "f", args: '{"a":1,"b":[2]}' }));
    expect(votedText(calling({ id: "2", name: "f", args: '{ "b": [2], "a": 1 }' }))).toBe(one);
    expect(votedText(calling({ id: "1", name: "f", args: '{"a":1,"b":[3]}' }))).not.toBe(one);
    expect(votedText(calling({ id: "1", name: "g", args: '{"a":1,"b":[2]}' }))).not.toBe(one);
  });

  it("is written for arguments that are no JSON, and for messages nested too deep to compare", () => {
    expect(votedText(calling({ id: "1", name: "f", args: "{cut" }))).toContain("{cut");
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    expect(votedText({ text: "", parts: { message: `{"tool_calls":[${deep}]}` } })).toBe("");
  });
});
