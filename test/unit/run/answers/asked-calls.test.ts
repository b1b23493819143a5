import { describe, expect, it } from "vitest";
import { TOOL_CALL_ID_CHARS_MAX, TOOL_TALK_BYTES_MAX } from "../../../../src/limits.ts";
import { askedCalls } from "../../../../src/run/answers/asked-calls.ts";

const message = (calls: unknown): string => JSON.stringify({ role: "assistant", content: null, tool_calls: calls });
const call = (fields: object = {}) => ({
  id: "1",
  type: "function",
  function: { name: "f", arguments: '{"n": 12345678901234567890}' },
  ...fields,
});

describe("the calls of a message", () => {
  it("are read with their arguments as they were written", () => {
    expect(askedCalls(message([call()]))).toEqual([{ id: "1", name: "f", arguments: '{"n": 12345678901234567890}' }]);
  });

  it.each([
    undefined,
    '{"role":"assistant","content":"a"}',
    message(null),
    message([]),
    '{"content":"\\"tool_calls\\""}',
  ])("are none in %s", (text) => expect(askedCalls(text)).toEqual([]));

  it.each([
    ["of no function", call({ function: undefined, custom: {} })],
    ["without an id", call({ id: undefined })],
    ["with an id that results would repeat at length", call({ id: "x".repeat(TOOL_CALL_ID_CHARS_MAX + 1) })],
    ["without a name", call({ function: { arguments: "{}" } })],
    ["with arguments that are no text", call({ function: { name: "f", arguments: {} } })],
  ])("are not the gateway's if one is %s", (_, other) => {
    expect(askedCalls(message([call(), other]))).toBeUndefined();
  });

  it("are not the gateway's in a message that is too long to be answered", () => {
    expect(askedCalls(message([call({ pad: "x".repeat(TOOL_TALK_BYTES_MAX) })]))).toBeUndefined();
  });

  it("may be nested at any depth", () => {
    const deep = `{"tool_calls":[{"id":"1","x":${"[".repeat(100_000)}${"]".repeat(100_000)},"function":{"name":"f"}}]}`;
    expect(() => askedCalls(deep)).not.toThrow();
  });
});
