import { describe, expect, it } from "vitest";
import { UNRESERVABLE_LISTED_MAX } from "../../../../../src/limits.ts";
import { readRequest, type Endpoint } from "../../../../../src/providers/formats/request/read.ts";

const BARE: Record<Endpoint, object> = {
  chat: { messages: [] },
  completions: { prompt: "x" },
  embeddings: { input: "x" },
  responses: { input: "x" },
  messages: { messages: [] },
};

function unboundedOf(endpoint: Endpoint, fields: object) {
  const parsed = readRequest(endpoint, new TextEncoder().encode(JSON.stringify({ ...BARE[endpoint], ...fields })));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
  return parsed.value.unbounded;
}

const PRICE = ["usd"];
const PROMPT = ["usd", "prompt_tokens"];
const COMPLETION = ["usd", "completion_tokens"];
const ALL = ["usd", "prompt_tokens", "completion_tokens"];

const CLEARING = {
  type: "clear_tool_uses_20250919",
  trigger: { type: "input_tokens", value: 9 },
  exclude_tools: ["f"],
};
const NAMESPACE = (...tools: object[]): object => ({ type: "namespace", name: "n", description: "d", tools });

describe("fields that no reservation covers", () => {
  it.each<[Endpoint, object, string, string[]]>([
    ["chat", { service_tier: "priority" }, "service_tier", PRICE],
    ["chat", { provider: {} }, "provider", PRICE],
    ["chat", { models: ["a"] }, "models", PRICE],
    ["chat", { route: "fallback" }, "route", PRICE],
    ["chat", { modalities: ["text", "audio"] }, "modalities", COMPLETION],
    ["chat", { audio: { voice: "x" } }, "audio", COMPLETION],
    ["chat", { prediction: { type: "content", content: "x" } }, "prediction", COMPLETION],
    ["chat", { web_search_options: {} }, "web_search_options", ALL],
    ["chat", { plugins: [{ id: "web" }] }, "plugins", ALL],
    ["chat", { use_beam_search: true }, "use_beam_search", COMPLETION],
    ["chat", { extra_body: { anything: {} } }, "extra_body.anything", ALL],
    ["chat", { chat_template: "{{x}}" }, "chat_template", PROMPT],
    ["chat", { tools: [{ type: "function" }, { type: "web_search" }] }, "tools[1].type", ALL],
    ["chat", { tools: [{ function: {} }] }, "tools[0].type", ALL],
    ["responses", { tools: [{ type: "mcp", server_url: "x" }] }, "tools[0].type", ALL],
    ["responses", { tools: [{ type: "code_interpreter" }] }, "tools[0].type", ALL],
    ["responses", { tools: [{ type: "image_generation" }] }, "tools[0].type", ALL],
    ["responses", { tools: [{ type: "computer_use_preview" }] }, "tools[0].type", ALL],
    ["responses", { background: true }, "background", ALL],
    ["responses", { prompt: { id: "p" } }, "prompt", PROMPT],
    ["responses", { previous_response_id: "resp_1" }, "previous_response_id", PROMPT],
    ["responses", { conversation: "conv_1" }, "conversation", PROMPT],
    ["responses", { input: [{ type: "item_reference", id: "x" }] }, "input[0]", PROMPT],
    ["responses", { input: [{ type: "reasoning", id: "rs", summary: [] }] }, "input[0]", PROMPT],
    ["responses", { input: [{ type: "message", id: "msg" }] }, "input[0]", PROMPT],
    ["responses", { input: [{ type: "compaction", encrypted_content: "x" }] }, "input[0]", PROMPT],
    ["messages", { tools: [{ type: "web_search_20250305", name: "web_search" }] }, "tools[0].type", ALL],
    ["messages", { mcp_servers: [{ url: "x" }] }, "mcp_servers", ALL],
    ["messages", { container: { skills: [] } }, "container", PROMPT],
    ["messages", { context_management: { edits: [{ type: "compact_20260112" }] } }, "context_management", ALL],
    [
      "messages",
      { context_management: { edits: [CLEARING, { type: "compact_20260112" }] } },
      "context_management",
      ALL,
    ],
    ["messages", { context_management: { edits: [{ ...CLEARING, more: 1 }] } }, "context_management", ALL],
    ["messages", { context_management: { edits: [{}] } }, "context_management", ALL],
    ["messages", { context_management: { edits: [CLEARING], more: 1 } }, "context_management", ALL],
    ["messages", { context_management: { edits: "clear" } }, "context_management", ALL],
    ["messages", { context_management: {} }, "context_management", ALL],
    ["messages", { compaction: { edits: [CLEARING] } }, "compaction", ALL],
    ["responses", { context_management: [{ type: "compaction" }] }, "context_management", ALL],
    ["responses", { tools: [NAMESPACE({ type: "web_search" })] }, "tools[0].tools[0].type", ALL],
    ["responses", { tools: [NAMESPACE(NAMESPACE())] }, "tools[0].tools[0].type", ALL],
    ["responses", { tools: [NAMESPACE({ name: "f" })] }, "tools[0].tools[0].type", ALL],
    ["responses", { tools: [{ ...NAMESPACE(), server_url: "x" }] }, "tools[0].server_url", ALL],
    ["chat", { client_metadata: { session_id: "s" } }, "client_metadata", ALL],
    ["messages", { speed: "fast" }, "speed", PRICE],
    ["messages", { inference_geo: "us" }, "inference_geo", PRICE],
    ["messages", { cache_control: { type: "ephemeral", ttl: "1d" } }, "cache_control.ttl", PRICE],
  ])("%s %j: notes %s", (endpoint, fields, field, spends) => {
    const [entry, ...others] = unboundedOf(endpoint, fields);
    expect(others).toEqual([]);
    expect(entry).toMatchObject({ field, why: expect.stringMatching(/^[A-Z].*[.?]$/), spends });
  });

  it.each<[Endpoint, object]>([
    [
      "chat",
      { service_tier: "flex", modalities: ["text"], models: [], plugins: [], audio: null, n: 2, logprobs: true },
    ],
    ["chat", { service_tier: "default", use_beam_search: false, num_beams: 1, prediction: null, unknown: null }],
    ["completions", { prompt: "x", service_tier: null }],
    ["chat", { extra_body: { google: { thinking_config: { thinking_budget: 5 } } } }],
    [
      "responses",
      { background: false, previous_response_id: null, prompt: null, conversation: null, truncation: "auto" },
    ],
    [
      "responses",
      {
        tools: [
          { type: "function", name: "f" },
          { type: "custom", name: "g" },
        ],
      },
    ],
    ["responses", { input: [{ type: "reasoning", content: [{ type: "reasoning_text", text: "x" }] }] }],
    ["responses", { tools: [NAMESPACE({ type: "function", name: "f", defer_loading: true }, { type: "custom" })] }],
    ["responses", { client_metadata: { session_id: "s", turn: { id: 1 } } }],
    ["messages", { context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }, CLEARING] } }],
    ["messages", { context_management: { edits: [] } }],
    ["messages", { context_management: null, betas: ["mid-conversation-tool-changes-2026-07-01"] }],
    ["messages", { tools: [{ name: "f", input_schema: {} }], mcp_servers: [], speed: "standard" }],
    ["messages", { cache_control: { type: "ephemeral", ttl: "5m" }, system: [{ text: "x", cache_control: null }] }],
  ])("%s %j: notes nothing", (endpoint, fields) => {
    expect(unboundedOf(endpoint, fields)).toEqual([]);
  });

  it.each(["search_parameters", "plugins", "web_search_options", "models", "service_tier", "enable_search"])(
    "notes %s with an escape inside its value, as it does without one",
    (name) => {
      for (const value of ['{"m\\u006fde":"on"}', '["\\u006fn"]', '[{"\\u006f":1}]', '"\\u006fn"']) {
        const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"${name}":${value}}`;
        const parsed = readRequest("chat", new TextEncoder().encode(body));
        if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
        expect(parsed.value.unbounded.length, value).toBeGreaterThan(0);
        expect(parsed.value.unbounded, value).toEqual(unboundedOf("chat", { [name]: JSON.parse(value) }));
      }
    },
  );

  it("notes each kind of field once, and always refuses a request with too many", () => {
    const tools = Array.from({ length: 50 }, () => ({ type: "function", cache_control: { ttl: "1d" } }));
    const entries = unboundedOf("chat", { tools, web_search_options: {}, prediction: {} });
    expect(entries.map(({ allowedBy }) => allowedBy)).toEqual([
      "web_search_options",
      "prediction",
      "tools.cache_control.ttl",
    ]);
    const harmless = Object.fromEntries(Array.from({ length: UNRESERVABLE_LISTED_MAX }, (_, i) => [`allowed_${i}`, 1]));
    expect(unboundedOf("chat", harmless)).toHaveLength(UNRESERVABLE_LISTED_MAX);
    const hidden = unboundedOf("chat", { ...harmless, plugins: ["web"], another: 1 });
    expect(hidden).toHaveLength(UNRESERVABLE_LISTED_MAX + 1);
    expect(hidden.at(-1)).toEqual({
      field: "plugins",
      why: expect.stringContaining("one of more fields"),
      spends: ALL,
    });
  });
});
