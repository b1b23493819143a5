/** Streams of the binding of Workers AI, whatever the borders of their chunks. */
import { describe, expect, it } from "vitest";
import { ChatEvents } from "../../../../../src/providers/formats/workers-ai/events.ts";

const stated = { id: "id-1", created: 5, model: "@cf/m", cap: null };
const older = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const DONE = "data: [DONE]\n\n";

/** What comes out when the stream comes in pieces of `size` bytes. */
function turned(stream: string, size: number, cap: number | null = null): string {
  const events = new ChatEvents({ ...stated, cap });
  const bytes = Buffer.from(stream);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(...events.feed(bytes.subarray(at, at + size)));
  return Buffer.concat([...pieces, events.rest()]).toString();
}

const chunk = (fields: object): string =>
  older({ id: "id-1", object: "chat.completion.chunk", created: 5, model: "@cf/m", ...fields });
const delta = (fields: object, finish: string | null = null): string =>
  chunk({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });

const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const STREAM = older({ response: "Grü", p: "ab" }) + older({ response: "ße" }) + older({ response: "", usage }) + DONE;

describe.each([1, 2, 7, 1000])("a stream in pieces of %d bytes", (size) => {
  it("becomes chunks of a chat completion, with the usage before its end", () => {
    const begun = delta({ role: "assistant", content: "Grü" }) + delta({ content: "ße" });
    const ended = delta({}, "stop") + chunk({ choices: [], usage }) + DONE;
    expect(turned(STREAM, size)).toBe(begun + ended);
  });

  it("says that it was cut if it has as many tokens as its cap", () => {
    expect(turned(STREAM, size, 2)).toContain(delta({}, "length"));
    expect(turned(STREAM, size, 3)).toContain(delta({}, "stop"));
  });

  it("has no end if it broke off", () => {
    const broken = turned(older({ response: "a" }) + 'data: {"respon', size);
    expect(broken).toBe(`${delta({ role: "assistant", content: "a" })}data: {"respon`);
  });

  it("passes byte for byte if it is in OpenAI's form, or an error", () => {
    const own = `: hello\n\ndata: {"choices":[{"delta":{"content":"a"}}], "usage":null}\n\ndata: {"error":{"message":"no"}}\n\n${DONE}`;
    expect(turned(own, size)).toBe(own);
  });

  it("numbers calls of tools through the whole stream", () => {
    const calls = (name: string): string => older({ tool_calls: [{ name, arguments: { a: 1 } }] });
    const called = (name: string, at: number): object => ({
      tool_calls: [{ id: `call_id-1_${at}`, type: "function", function: { name, arguments: '{"a":1}' }, index: at }],
    });
    const expected =
      delta({ role: "assistant", ...called("x", 0) }) + delta(called("y", 1)) + delta({}, "tool_calls") + DONE;
    expect(turned(calls("x") + calls("y") + DONE, size)).toBe(expected);
  });
});
