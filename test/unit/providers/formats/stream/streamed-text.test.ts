/** The text of a streamed chat completion and of a streamed message, whatever the borders of its chunks. */
import { expect, it } from "vitest";
import { StreamedText, type TextEndpoint } from "../../../../../src/providers/formats/stream/streamed-text.ts";

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const delta = (content: string | null, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] });

function read(stream: string, size: number, endpoint: TextEndpoint = "chat"): { text: string; isWhole: boolean } {
  const streamed = new StreamedText(endpoint);
  const bytes = new TextEncoder().encode(stream);
  let text = "";
  for (let at = 0; at < bytes.length; at += size) text += streamed.feed(bytes.subarray(at, at + size));
  return { text, isWhole: streamed.isWhole };
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

/** An event of a message, named as its provider does. */
const named = (type: string, more: object): string => `event: ${type}\n${event({ type, ...more })}`;
const block = (delta: object): string => named("content_block_delta", { index: 0, delta });
const said = (text: string): string => block({ type: "text_delta", text });
const ended = (reason: string): string =>
  named("message_delta", { delta: { stop_reason: reason, stop_sequence: null } });

it.each([1, 3, 1_000])("is of a message what its texts add, without its thoughts, in chunks of %i bytes", (size) => {
  const start = named("message_start", { message: { id: "m", role: "assistant", content: [], stop_reason: null } });
  const thought =
    block({ type: "thinking_delta", thinking: "hm" }) + block({ type: "input_json_delta", partial_json: "{" });
  const stream = `${start}${named("ping", {})}${thought}${said("hé")}${said("llo\n")}${ended("end_turn")}${named("message_stop", {})}`;
  expect(read(stream, size, "messages")).toEqual({ text: "héllo\n", isWhole: true });
});

it("of a message is not whole if it was cut, reports an error, or ends without an end", () => {
  const isWhole = (stream: string): boolean => read(stream, 100, "messages").isWhole;
  expect(isWhole(said("a") + ended("max_tokens"))).toBe(false);
  expect(isWhole(said("a"))).toBe(false);
  expect(isWhole(said("a") + ended("end_turn") + named("error", { error: { type: "overloaded_error" } }))).toBe(false);
});
