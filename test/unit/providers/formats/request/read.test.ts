import { describe, expect, it } from "vitest";
import { CONTENT_LEVELS_MAX, MAX_TOKENS_MAX, NAME_CHARS_MAX } from "../../../../../src/limits.ts";
import { readRequest, type Endpoint, type RequestFacts } from "../../../../../src/providers/formats/request/read.ts";

const encoder = new TextEncoder();

function read(endpoint: Endpoint, body: unknown) {
  return readRequest(endpoint, encoder.encode(typeof body === "string" ? body : JSON.stringify(body)));
}

function factsOf(endpoint: Endpoint, body: unknown): RequestFacts {
  const parsed = read(endpoint, body);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
  return parsed.value;
}

/** Path and message of a refusal, or null. */
function refusalOf(endpoint: Endpoint, body: unknown) {
  const parsed = read(endpoint, body);
  if (parsed.ok) return null;
  const { reason } = parsed;
  return reason.reason === "invalid_request" ? { param: reason.param, message: reason.message } : reason;
}

const bytesOf = (value: unknown) => encoder.encode(JSON.stringify(value)).length;

const user = { role: "user", content: "hi" };
const chat = { model: "m", messages: [user] };

describe("readRequest on bodies as clients send them", () => {
  it("reads a chat completion", () => {
    const body = {
      model: "openai/gpt-x",
      messages: [{ role: "system", content: "be brief" }, user],
      temperature: 0.2,
      max_completion_tokens: 300,
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
      response_format: { type: "json_object" },
      service_tier: "auto",
      n: 1,
    };
    expect(factsOf("chat", body)).toMatchObject({
      model: "openai/gpt-x",
      stream: true,
      includeUsage: true,
      maxTokens: 300,
      caps: [{ field: "max_completion_tokens", maxTokens: 300 }],
      completions: 1,
      promptBytes: bytesOf(body),
      promptTokenIds: 0,
      messageCount: 2,
      mediaParts: 0,
      unbounded: [],
    });
  });

  it("accepts a request of messages only", () => {
    const facts = factsOf("chat", { messages: [user] });
    expect(facts).toMatchObject({ model: null, stream: false, includeUsage: false, maxTokens: null, caps: [] });
  });

  it("counts candidates times prompts of a text completion", () => {
    const facts = factsOf("completions", { model: "m", prompt: ["a", "b", "c"], n: 2, best_of: 4, max_tokens: 16 });
    expect(facts).toMatchObject({ completions: 12, messageCount: 3, maxTokens: 16 });
    expect(factsOf("completions", { prompt: "a", n: 3, best_of: 2 })).toMatchObject({
      completions: 3,
      messageCount: 1,
    });
    expect(factsOf("completions", { model: "m" })).toMatchObject({ completions: 1, messageCount: 0 });
  });

  it("counts each number of a token prompt as one token, and not its bytes", () => {
    const one = { model: "m", prompt: [1, 50_256, 7] };
    expect(factsOf("completions", one)).toMatchObject({
      completions: 1,
      messageCount: 1,
      promptTokenIds: 3,
      promptBytes: bytesOf(one) - "[1,50256,7]".length,
    });
    const two = { model: "m", prompt: [[1, 2], [], [3]] };
    expect(factsOf("completions", two)).toMatchObject({ completions: 3, messageCount: 3, promptTokenIds: 3 });
  });

  it("reads embeddings, which have no completion", () => {
    const facts = factsOf("embeddings", { model: "m", input: ["a", "b"], encoding_format: "base64" });
    expect(facts).toMatchObject({ completions: 0, base64: true, messageCount: 2, maxTokens: null });
    expect(factsOf("embeddings", { input: "a", encoding_format: "float" }).base64).toBe(false);
    expect(factsOf("embeddings", { input: [[1], [2, 3]] })).toMatchObject({ promptTokenIds: 3, messageCount: 2 });
    expect(factsOf("embeddings", { input: [{ image: "https://x" }, { text: "y" }] }).mediaParts).toBe(1);
  });

  it("reads a Responses request with text, calls, results and parts", () => {
    const image = "data:image/png;base64,AAAA";
    const body = {
      model: "m",
      instructions: "be brief",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "see" },
            { type: "input_image", image_url: image },
          ],
        },
        { type: "reasoning", id: "rs_1", encrypted_content: "gAAA", summary: [] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "42" },
        { type: "function_call_output", call_id: "d", output: [{ type: "input_file", file_id: "file-1" }] },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "ok" }] },
      ],
      text: { format: { type: "text" } },
      max_output_tokens: 64,
      background: false,
      store: false,
    };
    expect(factsOf("responses", body)).toMatchObject({
      maxTokens: 64,
      caps: [{ field: "max_output_tokens", maxTokens: 64 }],
      messageCount: 7,
      mediaParts: 1,
      fileParts: 1,
      promptBytes: bytesOf(body) - bytesOf(image),
      unbounded: [],
    });
    expect(factsOf("responses", { model: "m", input: "hi" })).toMatchObject({ messageCount: 1, completions: 1 });
  });

  it("reads an Anthropic request with blocks within blocks", () => {
    const data = "A".repeat(400);
    const source = { type: "base64", media_type: "image/png", data };
    const body = {
      model: "claude",
      max_tokens: 100,
      system: [{ type: "text", text: "be brief", cache_control: { type: "ephemeral" } }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "see" },
            { type: "image", source },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "…", signature: "s" },
            { type: "tool_use", id: "t", name: "f", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t",
              content: [
                { type: "image", source },
                { type: "text", text: "x" },
              ],
            },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t" },
            { type: "tool_result", content: "text" },
          ],
        },
      ],
      tools: [
        { name: "f", input_schema: { type: "object" } },
        { type: "custom", name: "g", input_schema: {} },
      ],
      service_tier: "standard_only",
    };
    expect(factsOf("messages", body)).toMatchObject({
      maxTokens: 100,
      messageCount: 5,
      mediaParts: 2,
      promptBytes: bytesOf(body) - 2 * bytesOf(data),
      unbounded: [],
    });
  });

  it("counts the text of a document, and not its encoded data", () => {
    const facts = (source: object) =>
      factsOf("messages", { messages: [{ role: "user", content: [{ type: "document", source }] }] });
    const sizeOf = (source: object) =>
      bytesOf({ messages: [{ role: "user", content: [{ type: "document", source }] }] });
    const text = { type: "text", data: "all of this is read" };
    const pdf = { type: "base64", data: "QUJDRA==" };
    expect(facts(text)).toMatchObject({ fileParts: 0, promptBytes: sizeOf(text), unbounded: [] });
    expect(facts(pdf)).toMatchObject({ fileParts: 1, promptBytes: sizeOf(pdf) - bytesOf(pdf.data), unbounded: [] });
  });

  it.each([
    ["an image by URL", { type: "image_url", image_url: { url: "https://x/y.png" } }, "https://x/y.png"],
    ["an image in the short form", { type: "image_url", image_url: "data:x" }, "data:x"],
  ])("counts %s as an image, and takes off its data alone", (_, part, data) => {
    const body = { messages: [{ role: "user", content: [{ type: "text", text: "see" }, part, { text: "bare" }] }] };
    const dataBytes = data === null ? 0 : bytesOf(data);
    expect(factsOf("chat", body)).toMatchObject({ mediaParts: 1, promptBytes: bytesOf(body) - dataBytes });
  });

  it.each([
    ["a file", { type: "file", file: { file_data: "data:y", filename: "f" } }, "data:y"],
    ["a stored file", { type: "file", file: { file_id: "file-1" } }, null],
    ["a document by URL", { type: "document_url", document_url: "https://x" }, "https://x"],
  ])("counts %s as a file, and takes off its data alone", (_, part, data) => {
    const body = { messages: [{ role: "user", content: [part] }] };
    const dataBytes = data === null ? 0 : bytesOf(data);
    expect(factsOf("chat", body)).toMatchObject({
      fileParts: 1,
      mediaParts: 0,
      promptBytes: bytesOf(body) - dataBytes,
      unbounded: [],
    });
  });

  it.each([
    ["a part of an unknown type", { type: "hologram", hologram: { data: "QUJD" } }, "messages.content.hologram"],
    ["a part without type and text", { image: "https://x" }, undefined],
    ["a part that hides an image", { type: "text", text: "x", image_url: { url: "u" } }, "messages.content.image_url"],
    ["an unknown source", { type: "document", source: { type: "drive" } }, "messages.content.source"],
  ])("counts all bytes of %s, and notes it", (_, part, allowedBy) => {
    const body = { messages: [{ role: "user", content: [part] }] };
    const { unbounded, promptBytes, mediaParts } = factsOf("chat", body);
    expect(promptBytes).toBe(bytesOf(body));
    expect(mediaParts).toBe(0);
    expect(unbounded).toHaveLength(1);
    expect(unbounded[0]?.allowedBy).toBe(allowedBy);
  });

  it("reads the content that a document's source holds", () => {
    const picture = { type: "image", source: { type: "base64", data: "AAAA" } };
    const document = { type: "document", source: { type: "content", content: [picture, { type: "text", text: "x" }] } };
    const result = { type: "tool_result", tool_use_id: "t", content: [document, document] };
    expect(factsOf("messages", { messages: [{ role: "user", content: [result] }] })).toMatchObject({
      mediaParts: 2,
      fileParts: 0,
      unbounded: [],
    });
  });

  it("notes content that nests deeper than it is read", () => {
    let content: unknown = [{ type: "image", source: { type: "url", url: "u" } }];
    for (let level = 0; level < CONTENT_LEVELS_MAX; level++) content = [{ type: "tool_result", content }];
    const { unbounded, mediaParts } = factsOf("messages", { messages: [{ role: "user", content }] });
    expect(mediaParts).toBe(0);
    expect(unbounded).toMatchObject([{ spends: ["usd", "prompt_tokens"] }]);
    expect(unbounded[0]?.allowedBy).toBeUndefined();
  });

  it("counts thoughts as text, and reads their parts", () => {
    const of = (thinking: unknown) => ({
      messages: [{ role: "assistant", content: [{ type: "thinking", thinking }] }],
    });
    const long = of("x".repeat(1_000_000));
    expect(factsOf("chat", long)).toMatchObject({ mediaParts: 0, promptBytes: bytesOf(long), unbounded: [] });
    const picture = of([
      { type: "text", text: "x" },
      { type: "image_url", image_url: "u" },
    ]);
    expect(factsOf("chat", picture)).toMatchObject({ mediaParts: 1, unbounded: [] });
  });

  it("reports the most expensive cache mark, wherever it is", () => {
    const mark = (ttl?: string) => ({ cache_control: { type: "ephemeral", ...(ttl === undefined ? {} : { ttl }) } });
    const ttlOf = (body: object) => factsOf("messages", { messages: [user], ...body }).cacheTtl;
    expect(ttlOf({})).toBeNull();
    expect(ttlOf(mark())).toBe("5m");
    expect(ttlOf({ cache_control: null })).toBeNull();
    const marked = (ttl: string) => [{ type: "text", text: "x", ...mark(ttl) }];
    expect(ttlOf({ system: marked("1h"), ...mark("5m") })).toBe("1h");
    expect(ttlOf({ messages: [{ role: "user", content: [{ type: "tool_result", content: marked("1h") }] }] })).toBe(
      "1h",
    );
    expect(ttlOf({ tools: [{ name: "f", input_schema: {}, ...mark("1h") }] })).toBe("1h");
    const breakpoint = { type: "text", text: "x", prompt_cache_breakpoint: { mode: "explicit", ttl: "30m" } };
    expect(ttlOf({ messages: [{ role: "user", content: [breakpoint] }] })).toBe("5m");
  });

  it("reports a cache mark where no provider documents one, as a server finds it that looks everywhere", () => {
    const ttlOf = (body: object) => factsOf("messages", { messages: [user], ...body }).cacheTtl;
    const inSchema = (properties: object) =>
      ttlOf({ tools: [{ name: "f", input_schema: { type: "object", properties } }] });
    expect(inSchema({ q: { cache_control: { type: "ephemeral", ttl: "1h" } } })).toBe("1h");
    expect(inSchema({ q: { CACHE_CONTROL: { Ttl: "1h" } } })).toBe("1h");
    expect(inSchema({ cache_control: { type: "string" } })).toBe("5m");
    expect(inSchema({ q: { cache_control: { ttl: "5m" } } })).toBe("5m");
    expect(ttlOf({ metadata: { job: [{ cache_control: { ttl: "1h" } }] } })).toBe("1h");
    const call = { type: "tool_use", id: "t", name: "f", input: { cache_control: { ttl: "1h" } } };
    expect(ttlOf({ messages: [user, { role: "assistant", content: [call] }] })).toBe("1h");
    expect(
      inSchema({ q: { description: "cache_control: 1h", enum: ["cache_control"], cache_control: "1h" } }),
    ).toBeNull();
    const escaped = '{"input_schema":{"cach\\u0065_control":{"ttl":"1\\u0068"}},"name":"f"}';
    const body = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"tools":[${escaped}]}`;
    expect(factsOf("messages", body).cacheTtl).toBe("1h");
  });

  it("reports the service tier, and whether tools are sent", () => {
    expect(factsOf("chat", chat)).toMatchObject({ serviceTier: null, tools: false });
    const tools = [{ type: "function", function: { name: "f" } }];
    expect(factsOf("chat", { ...chat, tools, service_tier: "flex" })).toMatchObject({
      serviceTier: "flex",
      tools: true,
      unbounded: [],
    });
    expect(factsOf("chat", { ...chat, tools: [] }).tools).toBe(false);
    expect(factsOf("chat", { ...chat, functions: [{ name: "f" }] }).tools).toBe(true);
  });

  it("reserves what providers add for their own prompts and tools", () => {
    expect(factsOf("chat", { ...chat, safe_prompt: true }).promptTokenIds).toBe(200);
    expect(factsOf("chat", { ...chat, safe_prompt: false }).promptTokenIds).toBe(0);
    const tools = [
      { type: "bash_20250124", name: "bash" },
      { type: "text_editor_20250728", name: "edit" },
    ];
    expect(factsOf("messages", { ...chat, tools })).toMatchObject({ promptTokenIds: 2_000, unbounded: [] });
  });

  it.each([
    ["a sound", { type: "input_audio", input_audio: { data: "QUJD", format: "wav" } }, "QUJD"],
    ["a film", { type: "video_url", video_url: { url: "https://v" } }, "https://v"],
  ])("counts %s as a file, for its length is the client's, and takes off its data alone", (_, part, data) => {
    const body = { messages: [{ role: "user", content: [{ type: "text", text: "see" }, part] }] };
    const facts = { mediaParts: 0, fileParts: 1, promptBytes: bytesOf(body) - bytesOf(data) };
    expect(factsOf("chat", body)).toMatchObject(facts);
  });

  it("counts audio and images that the model made earlier", () => {
    const messages = [
      { role: "assistant", audio: { id: "a" } },
      { role: "assistant", content: null, images: [{}, {}] },
    ];
    expect(factsOf("chat", { messages })).toMatchObject({ mediaParts: 2, fileParts: 1 });
    const none = { messages: [{ role: "assistant", audio: null, images: null }] };
    expect(factsOf("chat", none)).toMatchObject({ mediaParts: 0, fileParts: 0 });
  });

  it("never counts fewer bytes than the text has once its escapes are decoded", () => {
    const body = '{"messages":[{"role":"user","content":"\\u6f22\\u5b57\\ud83d\\ude00\\u0041\\n\\ud800"}]}';
    const { messages } = JSON.parse(body);
    expect(factsOf("chat", body).promptBytes).toBeGreaterThanOrEqual(encoder.encode(messages[0].content).length);
    const around = '{"messages":[{"role":"user","content":""}]}';
    expect(factsOf("chat", body).promptBytes).toBe(body.length - around.length);
  });
});

describe("readRequest on caps", () => {
  it("uses the smaller of two caps and reports both", () => {
    const facts = factsOf("chat", { ...chat, max_tokens: 100, max_completion_tokens: 50 });
    expect(facts.maxTokens).toBe(50);
    expect(facts.caps).toEqual([
      { field: "max_tokens", maxTokens: 100 },
      { field: "max_completion_tokens", maxTokens: 50 },
    ]);
  });

  it("accepts a cap in every spelling, and null as no cap", () => {
    expect(factsOf("chat", { ...chat, max_tokens: null })).toMatchObject({
      maxTokens: null,
      caps: [{ field: "max_tokens", maxTokens: null }],
    });
    expect(factsOf("chat", { ...chat, max_output_tokens: 5 }).maxTokens).toBe(5);
    expect(factsOf("responses", { input: "x", max_tokens: 5, max_output_tokens: 9 }).maxTokens).toBe(5);
    expect(factsOf("chat", { ...chat, n_predict: 7 }).maxTokens).toBe(7);
    const endless = factsOf("chat", { ...chat, n_predict: -1 });
    expect(endless.maxTokens).toBeNull();
    expect(endless.unbounded).toMatchObject([{ field: "n_predict", spends: ["usd", "completion_tokens"] }]);
  });

  it.each(["1", "1.0e+2", String(MAX_TOKENS_MAX)])("accepts max_tokens: %s", (written) => {
    expect(factsOf("chat", `{"messages":[],"max_tokens":${written}}`).maxTokens).toBe(Number(written));
  });

  it.each([
    "0",
    "-1",
    "1.5",
    "1e999",
    "-1e999",
    '"100"',
    "true",
    "[1]",
    "{}",
    String(MAX_TOKENS_MAX + 1),
    "12345678901234567890",
  ])("refuses max_tokens: %s", (written) => {
    expect(refusalOf("chat", `{"messages":[],"max_tokens":${written}}`)).toEqual({
      param: "max_tokens",
      message: `max_tokens: expected an integer from 1 to ${MAX_TOKENS_MAX}`,
    });
  });

  it.each(["n", "best_of"])("refuses %s that is not a count", (field) => {
    for (const value of [0, -1, 1.5, "2", 1_001]) {
      expect(refusalOf("completions", { prompt: "x", [field]: value })).toMatchObject({ param: field });
    }
    expect(factsOf("completions", { prompt: "x", [field]: 1_000 }).completions).toBe(1_000);
    expect(factsOf("completions", { prompt: "x", [field]: null }).completions).toBe(1);
  });
});

describe("readRequest refuses always", () => {
  it.each([
    ["an empty body", "", "the body is not JSON: the text ends at line 1, column 1 (byte 0); expected a value"],
    [
      "a byte order mark",
      "\ufeff{}",
      "the body is not JSON: found the byte 0xef at line 1, column 1 (byte 0); expected a value",
    ],
    [
      "a raw NUL",
      '{"model":"a\0"}',
      "the body is not JSON: found the byte 0x00 at line 1, column 12 (byte 11); expected control characters in texts to be escaped",
    ],
    ["a list", "[]", "the body is not a JSON object"],
  ])("%s", (_, body, message) => {
    expect(refusalOf("chat", body)).toEqual({ param: null, message });
  });

  it("broken UTF-8, wherever it is", () => {
    const bytes = encoder.encode('{"messages":[{"role":"user","content":"x"}]}');
    bytes[bytes.indexOf(0x78)] = 0xff;
    expect(readRequest("chat", bytes)).toMatchObject({ ok: false, reason: { param: null } });
  });

  it("nesting of 100,000 levels", () => {
    expect(refusalOf("chat", `{"messages":${"[".repeat(100_000)}`)).toMatchObject({ param: null });
  });

  it.each<[string, Endpoint, string, string]>([
    ["at the top", "chat", '{"messages":[],"max_tokens":5,"max\\u005ftokens":500}', "max_tokens"],
    ["unknown, at the top", "chat", '{"messages":[],"x":5,"x":5}', "x"],
    ["in a message", "chat", '{"messages":[{"content":"a","content":[]}]}', "messages[0].content"],
    [
      "in a part",
      "chat",
      '{"messages":[{"content":[{"type":"text","type":"image_url"}]}]}',
      "messages[0].content[0].type",
    ],
    ["in a tool", "chat", '{"messages":[],"tools":[{"type":"function","type":"web_search"}]}', "tools[0].type"],
    [
      "in stream_options",
      "chat",
      '{"messages":[],"stream_options":{"include_usage":true,"include_usage":false}}',
      "stream_options.include_usage",
    ],
    ["in an item", "responses", '{"input":[{"type":"message","type":"item_reference"}]}', "input[0].type"],
    [
      "in a document",
      "messages",
      '{"messages":[{"content":[{"type":"document","source":{"type":"text","type":"base64"}}]}]}',
      "messages[0].content[0].source.type",
    ],
  ])("a repeated name %s", (_, endpoint, body, param) => {
    expect(refusalOf(endpoint, body)).toEqual({
      param,
      message: `${param} appears more than once; expected each field once`,
    });
  });

  it("accepts a repeated name that decides nothing", () => {
    expect(
      refusalOf("chat", '{"messages":[],"tools":[{"type":"function","function":{"parameters":{"a":1,"a":2}}}]}'),
    ).toBeNull();
  });

  it.each<[Endpoint, object, string]>([
    ["chat", { model: "m" }, "messages"],
    ["messages", { model: "m" }, "messages"],
    ["embeddings", { model: "m" }, "input"],
    ["chat", { messages: "hi" }, "messages"],
    ["chat", { messages: null }, "messages"],
    ["chat", { messages: ["hi"] }, "messages[0]"],
    ["chat", { messages: [user, { content: 5 }] }, "messages[1].content"],
    ["chat", { messages: [{ content: { type: "text" } }] }, "messages[0].content"],
    ["chat", { messages: [{ content: [5] }] }, "messages[0].content[0]"],
    ["chat", { ...chat, model: 5 }, "model"],
    ["chat", { ...chat, model: "" }, "model"],
    ["chat", { ...chat, model: "a\u0000b" }, "model"],
    ["chat", { ...chat, model: "x".repeat(NAME_CHARS_MAX + 1) }, "model"],
    ["chat", { ...chat, stream: "true" }, "stream"],
    ["chat", { ...chat, stream_options: true }, "stream_options"],
    ["chat", { ...chat, stream_options: { include_usage: 1 } }, "stream_options.include_usage"],
    ["chat", { ...chat, tools: {} }, "tools"],
    ["chat", { ...chat, tools: ["web_search"] }, "tools[0]"],
    ["messages", { messages: [], system: 5 }, "system"],
    ["messages", { messages: [{ content: [{ type: "tool_result", content: 5 }] }] }, "messages[0].content[0].content"],
    ["responses", { input: 5 }, "input"],
    ["responses", { input: ["hi"] }, "input[0]"],
    ["responses", { input: "x", instructions: ["y"] }, "instructions"],
    ["responses", { input: [{ type: "function_call_output", output: 5 }] }, "input[0].output"],
    ["completions", { prompt: 5 }, "prompt"],
    ["completions", { prompt: [{ text: "x" }] }, "prompt[0]"],
    ["completions", { prompt: ["a", 5] }, "prompt[1]"],
    ["completions", { prompt: [5, "a"] }, "prompt[1]"],
    ["completions", { prompt: [[1], [2, "a"]] }, "prompt[1][1]"],
    ["completions", { prompt: [1.5] }, "prompt[0]"],
    ["completions", { prompt: [-1] }, "prompt[0]"],
    ["completions", { prompt: ["a", null] }, "prompt[1]"],
    ["embeddings", { input: [true] }, "input[0]"],
  ])("%s %j, naming %s", (endpoint, body, param) => {
    expect(refusalOf(endpoint, body)).toMatchObject({ param });
  });

  it("accepts a model name of the greatest length, and null as no name", () => {
    const model = "x".repeat(NAME_CHARS_MAX);
    expect(factsOf("chat", { ...chat, model }).model).toBe(model);
    expect(factsOf("chat", { ...chat, model: null }).model).toBeNull();
    expect(factsOf("chat", '{"mod\\u0065l":"a\\u002fb","messages":[]}').model).toBe("a/b");
  });
});
