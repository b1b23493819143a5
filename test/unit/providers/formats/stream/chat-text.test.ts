/** The text of a streamed chat completion, whatever the borders of its chunks. */
import { expect, it } from "vitest";
import { ChatText } from "../../../../../src/providers/formats/stream/chat-text.ts";

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const delta = (content: string | null, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] });

function read(stream: string, size: number): { text: string; isWhole: boolean } {
  const chat = new ChatText();
  const bytes = new TextEncoder().encode(stream);
  let text = "";
  for (let at = 0; at < bytes.length; at += size) text += chat.feed(bytes.subarray(at, at + size));
  return { text, isWhole: chat.isWhole };
}

it.each([1, 3, 1_000])("is what its events add, in chunks of %i bytes", (size) => {
  const stream = `: waiting\n\n${delta("hé")}${delta("llo\n")}${delta(null, "stop")}${event({ choices: [] })}data: [DONE]\n\n`;
  expect(read(stream, size)).toEqual({ text: "héllo\n", isWhole: true });
});

it("is not whole if it was cut, reports an error, or ends without an end", () => {
  expect(read(delta("a", "length"), 100).isWhole).toBe(false);
  expect(read(delta("a"), 100).isWhole).toBe(false);
  expect(read(`${delta("a", "stop")}${event({ error: { message: "x" } })}`, 100).isWhole).toBe(false);
});
