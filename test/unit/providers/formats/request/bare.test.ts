/** Which requests are one text and nothing else, and what of them counts as prompt. */
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../../../../src/call.ts";
import { LARGE_BODY_BYTES_MIN } from "../../../../../src/limits.ts";
import { readRequest } from "../../../../../src/providers/formats/request/read.ts";

const encoder = new TextEncoder();
const TEXT = "Say it again.";
const message = { role: "user", content: TEXT };

function read(body: unknown, endpoint: Endpoint = "chat") {
  const bytes = encoder.encode(typeof body === "string" ? body : JSON.stringify(body));
  const facts = readRequest(endpoint, bytes);
  if (!facts.ok) throw new Error(JSON.stringify(facts.reason));
  const { isBare, promptBytes } = facts.value;
  return { isBare, promptBytes, sentBytes: bytes.length };
}

describe("a request whose prompt is one user's text", () => {
  it.each<[string, Record<string, unknown>]>([
    ["alone", { messages: [message] }],
    ["with a model and a cap", { model: "m", messages: [message], max_tokens: 7 }],
    ["with the newer cap", { messages: [message], max_completion_tokens: 7 }],
    ["with sampling", { messages: [message], temperature: 0.5, top_p: 1, seed: 3, presence_penalty: 0 }],
    ["as a stream with its usage", { messages: [message], stream: true, stream_options: { include_usage: true } }],
    ["with fields that are null", { messages: [message], temperature: null, max_tokens: null }],
    ["in another order", { max_tokens: 7, messages: [{ content: TEXT, role: "user" }], model: "m" }],
  ])("counts the bytes of the text, %s", (_, body) => {
    expect(read(body)).toMatchObject({ isBare: true, promptBytes: TEXT.length });
  });

  it("is one of Anthropic's messages as well", () => {
    const body = { model: "m", max_tokens: 7, messages: [message] };
    expect(read(body, "messages")).toMatchObject({ isBare: true, promptBytes: TEXT.length });
  });

  it("counts its text as it is sent, and what normalising can add", () => {
    expect(read('{"messages":[{"role":"user","content":"\\u0041\\n\\"b\\""}]}').promptBytes).toBe(
      '\\u0041\\n\\"b\\"'.length,
    );
    // U+FDFA becomes 18 characters of 33 bytes; it has 3.
    const bare = read({ messages: [{ role: "user", content: "\uFDFA" }] });
    const other = read({ messages: [{ role: "system", content: "\uFDFA" }] });
    expect(bare.promptBytes).toBe(33);
    expect(other.promptBytes).toBe(other.sentBytes + 30);
  });

  it("may have white space anywhere", () => {
    const body = ' { "messages" : [ { "role" : "user" , "content" : "abc" } ] , "max_tokens" : 7 } ';
    expect(read(body)).toMatchObject({ isBare: true, promptBytes: 3 });
  });
});

describe("a request whose template may be another one, or that has more to read, counts all its bytes:", () => {
  it.each<[string, unknown]>([
    ["a system message", { messages: [{ role: "system", content: TEXT }] }],
    ["an assistant's message", { messages: [{ role: "assistant", content: TEXT }] }],
    ["a role with an escape", '{"messages":[{"role":"\\u0075ser","content":"a"}]}'],
    ["a role that begins alike", { messages: [{ role: "user2", content: TEXT }] }],
    ["two messages", { messages: [message, message] }],
    ["no message", { messages: [] }],
    ["a message with a name", { messages: [{ ...message, name: "n" }] }],
    ["a message without content", { messages: [{ role: "user", refusal: "r" }] }],
    ["content as parts", { messages: [{ role: "user", content: [{ type: "text", text: TEXT }] }] }],
    ["content that is null", { messages: [{ role: "user", content: null }] }],
    ["an effort of reasoning", { messages: [message], reasoning_effort: "high" }],
    ["a form of the answer", { messages: [message], response_format: { type: "json_object" } }],
    ["arguments of the template", { messages: [message], chat_template_kwargs: { enable_thinking: false } }],
    ["tools", { messages: [message], tools: [] }],
    ["stop texts", { messages: [message], stop: ["a text"] }],
    ["a sampling field that is a text", { messages: [message], seed: "a text" }],
    ["a field of another name that is null", { messages: [message], documents: null }],
    ["several completions", { messages: [message], n: 2 }],
  ])("%s", (_, body) => {
    const { isBare, promptBytes, sentBytes } = read(body);
    expect(isBare).toBe(false);
    expect(promptBytes).toBe(sentBytes);
  });

  it("Anthropic's system message, as text and as blocks", () => {
    const body = { max_tokens: 7, messages: [message] };
    for (const system of ["Be kind.", [{ type: "text", text: "Be kind." }]]) {
      expect(read({ ...body, system }, "messages").isBare).toBe(false);
    }
  });

  it("other endpoints, and bodies that are read in slices", () => {
    expect(read({ prompt: TEXT }, "completions").isBare).toBe(false);
    expect(read({ input: [message] }, "responses").isBare).toBe(false);
    const long = "a".repeat(LARGE_BODY_BYTES_MIN);
    const { isBare, promptBytes, sentBytes } = read({ messages: [{ role: "user", content: long }] });
    expect(isBare).toBe(false);
    expect(promptBytes).toBe(sentBytes);
  });
});
