/** What is kept of an answer beside its text: the message as its provider wrote it, from JSON and from a stream. */
import { describe, expect, it } from "vitest";
import type { Included } from "../../../../src/call.ts";
import { aggregateStream } from "../../../../src/providers/formats/aggregate/stream.ts";
import { classify } from "../../../../src/providers/classify.ts";
import { ARGUMENTS, SPEAKERS, wireOf, type Speaker } from "../../../support/speakers.ts";
import { makeAnthropic, makeUpstream } from "../make.ts";

function read(speaker: Pick<Speaker, "kind">, text: string, include: Included[] = []) {
  const upstream = speaker.kind === "openai" ? makeUpstream() : makeAnthropic();
  const body = { ok: true, text } as const;
  const outcome = classify(upstream, "m", { status: 200, headers: new Headers(), nowMs: 0, body }, include);
  if (outcome.kind === "failure") throw new Error(JSON.stringify(outcome));
  return outcome;
}

function streamedBody(speaker: Speaker): string {
  const family = speaker.kind === "openai" ? "chat" : "messages";
  const aggregated = aggregateStream(family, new TextEncoder().encode(wireOf(speaker)), "clean");
  if (aggregated.kind !== "answer") throw new Error("truncated");
  return aggregated.text;
}

/** Without fields that say nothing, which streams leave out. */
function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]) => [name, said(each)] as const);
  return Object.fromEntries(entries.filter(([, each]) => each !== null && each !== "" && !isEmpty(each)));
}

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

describe.each(SPEAKERS)("$name", (speaker) => {
  it("keeps its message, from a stream the same as from JSON", () => {
    const whole = read(speaker, speaker.body);
    const streamed = read(speaker, streamedBody(speaker));
    expect(whole.parts?.message).toBeDefined();
    if (speaker.kind === "openai") expect(whole.parts?.message).toBe(speaker.message);
    expect(said(JSON.parse(streamed.parts?.message ?? ""))).toEqual(said(JSON.parse(whole.parts?.message ?? "")));
    expect({ ...streamed, parts: null }).toEqual({ ...whole, parts: null });
  });

  it("keeps the arguments of its calls byte for byte", () => {
    for (const body of [speaker.body, streamedBody(speaker)]) {
      const message: { tool_calls?: { function: { arguments: string } }[] } = JSON.parse(
        read(speaker, body).parts?.message ?? "",
      );
      const [call] = message.tool_calls ?? [];
      if (speaker.message.includes("lookup")) expect(call?.function.arguments).toBe(ARGUMENTS);
      else expect(call).toBeUndefined();
    }
  });

  it("reports its reasoning and its cached tokens", () => {
    expect(read(speaker, speaker.body).usage).toMatchObject({ cachedTokens: 64, reasoningTokens: 12 });
  });
});

describe("an Anthropic message in the chat form", () => {
  const messageOf = (name: string): unknown => {
    const speaker = SPEAKERS.find((each) => each.name === name);
    return JSON.parse((speaker === undefined ? undefined : read(speaker, speaker.body).parts?.message) ?? "null");
  };

  it("has its thoughts as text and as signed blocks, and its calls as tool calls", () => {
    expect(messageOf("claude")).toEqual({
      role: "assistant",
      content: "I look it up.",
      reasoning: "Two steps: look up, then answer.",
      thinking_blocks: [
        { type: "thinking", thinking: "Two steps: look up, then answer.", signature: "EqQBCgIYAhIM1gbcDa9GJwZA2b3h==" },
        { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4a" },
      ],
      tool_calls: [{ id: "toolu_1", type: "function", function: { name: "lookup", arguments: ARGUMENTS } }],
    });
    expect(messageOf("claude-bare")).toMatchObject({ content: null });
  });

  it("has its citations as annotations of the text that they support, and its content as it came", () => {
    expect(messageOf("claude-cites")).toMatchObject({
      content: "Grass is green.",
      annotations: [{ type: "char_location", start_index: 9, end_index: 14, citation: { document_title: "Nature" } }],
      content_blocks: [{ type: "text" }, { type: "text", citations: [{}] }, { type: "text" }],
    });
    expect(messageOf("claude-search")).toMatchObject({
      content: "He was born in 1916",
      annotations: [
        {
          type: "url_citation",
          url_citation: { url: "https://example.org/shannon", title: "Shannon", start_index: 0, end_index: 19 },
        },
      ],
      content_blocks: [{ type: "server_tool_use" }, { type: "web_search_tool_result" }, { type: "text" }],
    });
  });

  it("has a refusal", () => {
    const body = JSON.stringify({
      content: [],
      stop_reason: "refusal",
      stop_details: { type: "refusal", explanation: "It is not allowed." },
      usage: { input_tokens: 1, output_tokens: 1 },
    });
    const { parts, finishReason } = read({ kind: "anthropic" }, body);
    expect([JSON.parse(parts?.message ?? ""), finishReason]).toEqual([
      { role: "assistant", content: "", refusal: "It is not allowed." },
      "content_filter",
    ]);
  });
});

describe("an answer that is text only", () => {
  const bodyOf = (message: object, more: object = {}) => JSON.stringify({ choices: [{ message, ...more }] });
  const openai = { kind: "openai" } as const;

  it.each([
    [{ role: "assistant", content: "a" }],
    [{ role: "assistant", content: "a", refusal: null, annotations: [], tool_calls: [], audio: null, reasoning: "" }],
    [{ role: "assistant", content: [{ type: "text", text: "a" }], provider_specific_fields: { refusal: null } }],
    [{ content: "a", role: "assistant", prefix: false, index: 0, id: "1", name: "b" }],
  ])("keeps nothing beside it: %j", (message) => {
    expect(read(openai, bodyOf(message)).parts).toBeUndefined();
  });

  it("keeps its message and its log probabilities if they are included", () => {
    const logprobs = { content: [{ token: "a", logprob: -1.5e-7 }] };
    const body = bodyOf({ role: "assistant", content: "a" }, { logprobs });
    expect(read(openai, body, ["message"]).parts).toEqual({ message: '{"role":"assistant","content":"a"}' });
    expect(read(openai, body, ["logprobs"]).parts).toEqual({ logprobs: JSON.stringify(logprobs) });
    expect(read(openai, bodyOf({ content: "a" }), ["logprobs"]).parts).toBeUndefined();
    const plain = JSON.stringify({ content: [{ type: "text", text: "a" }], usage: {} });
    expect(read({ kind: "anthropic" }, plain, ["message"]).parts).toEqual({
      message: '{"role":"assistant","content":"a"}',
    });
  });

  it("is a part of a line, whatever white space its provider writes", () => {
    const body = '{"choices":[\r\n{"message":{\n  "role": "assistant",\r\n  "content": "a\\nb",\n "x": [1]}}]}';
    const { message = "" } = read(openai, body).parts ?? {};
    expect(message).not.toMatch(/[\r\n]/);
    expect(JSON.parse(message)).toEqual({ role: "assistant", content: "a\nb", x: [1] });
  });

  it("never shows the provider's key", () => {
    const { apiKey } = makeUpstream();
    const body = bodyOf({ content: "a", reasoning: `the key is ${apiKey}` });
    expect(apiKey?.length).toBeGreaterThan(5);
    expect(read(openai, body).parts?.message).not.toContain(apiKey);
  });
});

describe("numbers of a stream", () => {
  it("keep their digits", () => {
    const delta =
      '{"choices":[{"index":0,"delta":{"content":"a","seed":12345678901234567890,"p":[1.0000000000000001e-3]}}]}';
    const end = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}';
    const bytes = new TextEncoder().encode(`data: ${delta}\n\ndata: ${end}\n\ndata: [DONE]\n\n`);
    const aggregated = aggregateStream("chat", bytes, "clean");
    const { parts } = read({ kind: "openai" }, aggregated.kind === "answer" ? aggregated.text : "");
    expect(parts?.message).toContain('"seed":12345678901234567890,"p":[1.0000000000000001e-3]');
  });
});
