import { describe, expect, it } from "vitest";
import type { CallBody } from "../../../../../src/call.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../../../src/limits.ts";
import { buildAnthropicRequest } from "../../../../../src/providers/kinds/anthropic/request.ts";
import { OWN_PARAMS } from "../../../../../src/providers/formats/request/own-params.ts";
import { CAP_SPELLINGS } from "../../../../../src/providers/formats/request/request-fields.ts";
import { KEY, makeAnthropic, makeLease } from "../../make.ts";

const lease = makeLease({ model: "claude-x", capTokens: 64 });

function requestOf(body: CallBody, upstream = makeAnthropic(), to = lease) {
  const built = buildAnthropicRequest(upstream, to, body);
  if (!built.ok) throw new Error(JSON.stringify(built.reason));
  return built.request;
}

const bodyOf = (body: CallBody): unknown => JSON.parse(requestOf(body).body);

function refusedParamOf(body: CallBody) {
  const built = buildAnthropicRequest(makeAnthropic(), lease, body);
  return built.ok || built.reason.reason !== "invalid_request" ? null : built.reason.param;
}

const user = { role: "user", content: "hi" };
const call = (args: string) => ({ id: "call_1", type: "function", function: { name: "lookup", arguments: args } });

describe("buildAnthropicRequest", () => {
  it("posts a prompt as the user message, the system text beside it", () => {
    expect(requestOf({ prompt: "hi" }).url).toBe("https://acme.test/v1/messages");
    expect(bodyOf({ prompt: "hi", system: "be brief", temperature: 0 })).toEqual({
      model: "claude-x",
      max_tokens: 64,
      system: "be brief",
      messages: [user],
      temperature: 0,
    });
  });

  it("sends the documented default where the lease names no cap: the API demands one", () => {
    const { body } = requestOf({ prompt: "a" }, makeAnthropic(), makeLease({ capTokens: null }));
    expect(JSON.parse(body)).toMatchObject({ max_tokens: COMPLETION_TOKENS_DEFAULT });
  });

  it("carries the key as x-api-key and nowhere else", () => {
    const { url, headers, body } = requestOf({ prompt: "a" });
    expect(headers).toEqual({
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": "fanout",
      "anthropic-version": "2023-06-01",
      "x-api-key": KEY,
    });
    expect(url + body).not.toContain(KEY);
  });

  it("adds configured headers, a version too, and sends no key where there is none", () => {
    const configured = { "anthropic-beta": "context-1m-2025-08-07", "anthropic-version": "2027-01-01" };
    const { headers } = requestOf({ prompt: "a" }, makeAnthropic({ apiKey: null, headers: configured }));
    expect(headers).toMatchObject(configured);
    expect(headers).not.toHaveProperty("x-api-key");
  });

  it("passes params on unchanged", () => {
    const tools = [{ type: "custom", name: "t", input_schema: { type: "object" } }];
    const params = { top_k: 5, stop_sequences: ["x"], tools, thinking: { type: "adaptive" } };
    expect(bodyOf({ prompt: "hi", params })).toEqual({
      model: "claude-x",
      max_tokens: 64,
      messages: [user],
      ...params,
    });
  });

  it.each([...OWN_PARAMS.keys(), ...CAP_SPELLINGS])("lets params set no %s", (name) => {
    const body = { prompt: "a", temperature: 0.1 };
    expect(requestOf({ ...body, params: { [name]: 99 } }).body).toBe(requestOf(body).body);
  });
});

describe("the conversation of an Anthropic request", () => {
  it("takes system messages at the start out of the messages, the call's own system first, nothing in between", () => {
    const messages = [
      { role: "system", content: "b" },
      { role: "developer", content: [{ type: "text", text: "c", cache_control: { type: "ephemeral" } }] },
      user,
    ];
    expect(bodyOf({ messages, system: "a" })).toMatchObject({
      system: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
        { type: "text", text: "c", cache_control: { type: "ephemeral" } },
      ],
      messages: [user],
    });
  });

  it("sends a single system message as a text, and none that is empty", () => {
    expect(bodyOf({ messages: [{ role: "system", content: "b" }, user] })).toMatchObject({ system: "b" });
    expect(bodyOf({ messages: [{ role: "system", content: "" }, user], system: "a" })).toMatchObject({
      system: [{ type: "text", text: "a" }],
    });
    expect(bodyOf({ messages: [{ role: "system", content: "" }, user] })).not.toHaveProperty("system");
    expect(bodyOf({ prompt: "hi", system: "" })).not.toHaveProperty("system");
  });

  it("leaves a later system message where it is, for the provider to accept or not", () => {
    const messages = [user, { role: "system", content: "b" }];
    expect(bodyOf({ messages })).toMatchObject({ messages });
    expect(bodyOf({ messages })).not.toHaveProperty("system");
  });

  it("passes user and assistant messages on, as text and as parts of text and image", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
    const messages = [
      { role: "user", content: [{ type: "text", text: "a" }, image] },
      { role: "assistant", content: "b" },
      user,
    ];
    expect(bodyOf({ messages })).toMatchObject({ messages });
  });

  it("drops fields of a message that are null, as OpenAI's SDKs return them", () => {
    expect(bodyOf({ messages: [user, { role: "assistant", content: "b", refusal: null }] })).toMatchObject({
      messages: [user, { role: "assistant", content: "b" }],
    });
  });

  const imageUrl = { type: "image_url", image_url: { url: "https://a.test/a.png" } };
  it.each<[string, unknown[]]>([
    ["messages[0]", ["hi"]],
    ["messages[0].role", [{ content: "a" }]],
    ["messages[1].tool_call_id", [user, { role: "tool", content: "a" }]],
    ["messages[1].role", [user, { role: "function", content: "a" }]],
    ["messages[1].role", [user, { role: "developer", content: "a" }]],
    ["messages[0].content", [{ role: "user", content: null }]],
    ["messages[0].content", [{ role: "user" }]],
    ["messages[0].name", [{ role: "user", content: "a", name: "bob" }]],
    ["messages[1].audio", [user, { role: "assistant", content: "a", audio: { id: "audio_1" } }]],
    ["messages[1].reasoning", [user, { role: "assistant", content: "a", reasoning: "unsigned" }]],
    ["messages[1].annotations", [user, { role: "assistant", content: "a", annotations: [{ type: "url_citation" }] }]],
    ["messages[1].thinking_blocks[0]", [user, { role: "assistant", content: "a", thinking_blocks: ["b"] }]],
    ["messages[1].tool_calls[0].function", [user, { role: "assistant", tool_calls: [{ id: "c", type: "custom" }] }]],
    ["messages[1].tool_calls[0].function.arguments", [user, { role: "assistant", tool_calls: [call("[1]")] }]],
    ["messages[1].tool_calls[0].function.arguments", [user, { role: "assistant", tool_calls: [call("{cut")] }]],
    ["messages[0].content[1].type", [{ role: "user", content: [{ type: "text", text: "a" }, imageUrl] }]],
    ["messages[0].content[0].type", [{ role: "user", content: [{ text: "no type" }] }]],
    ["messages[0].content[0].type", [{ role: "user", content: ["a"] }]],
    ["messages[0].content[0].type", [{ role: "user", content: [{ type: "document", source: {} }] }]],
    ["messages[0].content[0].type", [{ role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] }]],
    ["messages[0].content[0].text", [{ role: "user", content: [{ type: "text", text: 7 }] }]],
    ["messages[0].content[0].source", [{ role: "user", content: [{ type: "image" }] }]],
    ["messages[0].content[0].type", [{ role: "system", content: [{ type: "image", source: {} }] }, user]],
    ["messages[1].content[0].type", [user, { role: "system", content: [{ type: "image", source: {} }] }]],
    ["messages[0].content", [{ role: "system", content: 7 }, user]],
  ])("refuses %s rather than leave it out: %j", (param, messages) => {
    expect(refusedParamOf({ messages })).toBe(param);
  });

  it("shows no more of a field's name than a name may hold", () => {
    expect(refusedParamOf({ messages: [{ ...user, ["x".repeat(5_000)]: 1 }] })).toHaveLength(
      "messages[0].".length + 256,
    );
  });
});
