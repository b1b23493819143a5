/** Elements that are no message, part, tool or item of their place: an upstream that resolves them bills what it holds. */
import { describe, expect, it } from "vitest";
import type { CallFacts, Endpoint } from "../../../../../src/call.ts";
import { parseQuery } from "../../../../../src/contract/query.ts";
import { callFactsOf } from "../../../../../src/providers/formats/request/call-facts.ts";
import { readRequest, withBetas } from "../../../../../src/providers/formats/request/read.ts";
import { LIMITED, refusalUnder } from "./ways-in.ts";

const encoder = new TextEncoder();
const chosen = { model: "m", priority: 2, timeoutMs: null } as const;
const user = { role: "user", content: "x" };

function factsOf(family: Endpoint, body: Record<string, unknown>, betas = ""): CallFacts | null {
  const read = readRequest(family, encoder.encode(JSON.stringify(body)));
  return read.ok ? callFactsOf(withBetas(read.value, betas), chosen) : null;
}

/** Refused under a limit, or always because no upstream takes it. */
function expectRefused(family: Endpoint, body: Record<string, unknown>, place: string): void {
  const facts = factsOf(family, body);
  if (facts === null) return;
  expect(refusalUnder(facts, LIMITED), JSON.stringify(body)).toMatchObject({
    reason: "invalid_request",
    message: expect.stringContaining(place),
  });
  expect(refusalUnder(facts, {})).toBeNull();
}

/** What names a thing that an upstream holds, by the names of the families that have it. */
const REFERENCES: readonly Record<string, unknown>[] = [
  { type: "item_reference", id: "msg_1" },
  { id: "msg_1" },
  { id: "msg_1", content: [] },
  { id: "msg_1", role: "assistant", content: "" },
  { id: "msg_1", role: "assistant", content: [], type: "message" },
  { role: "user", type: "item_reference", id: "msg_1", content: "x" },
  { type: "compaction", id: "cmp_1" },
  { type: "compaction", encrypted_content: "x" },
  { type: "reasoning", id: "rs_1" },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "" },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "  " },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null },
  { type: "function_call_output", call_id: "c1" },
  { type: "function_call", id: "fc_1" },
  { type: "mcp_call", id: "mcp_1" },
  { type: "mcp_list_tools", id: "mcpl_1", server_label: "a" },
  { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true },
  { type: "file_search_call", id: "fs_1" },
  { type: "web_search_call", id: "ws_1" },
  { type: "code_interpreter_call", id: "ci_1", container_id: "c" },
  { type: "image_generation_call", id: "ig_1" },
  { type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot", file_id: "file-1" } },
  { type: "container_upload", file_id: "file_1" },
  { type: "tool_reference", tool_name: "t" },
  { type: "server_tool_use", id: "s_1", name: "web_search" },
  { type: "web_search_tool_result", tool_use_id: "s_1", content: [] },
  { type: "text", id: "msg_1" },
  { type: "text", id: "msg_1", text: "" },
  { type: "text", text: [{ type: "item_reference", id: "msg_1" }] },
  { type: "text", text: { id: "msg_1" } },
  { type: "output_text", id: "msg_1", text: null },
  { type: "text", text: "x", annotations: [{ type: "file", id: "file_1" }] },
  { type: "tool_use", id: "t_1" },
];

const PLACES: readonly [Endpoint, string, (element: unknown) => Record<string, unknown>][] = [
  ["chat", "messages[1]", (element) => ({ messages: [user, element] })],
  ["messages", "messages[1]", (element) => ({ messages: [user, element] })],
  ["embeddings", "messages[1]", (element) => ({ input: "x", messages: [user, element] })],
  ["chat", "messages[0].content[0]", (element) => ({ messages: [{ role: "user", content: [element] }] })],
  ["messages", "system[0]", (element) => ({ messages: [user], system: [element] })],
  [
    "messages",
    "messages[0].content[0].content[0]",
    (element) => ({
      messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [element] }] }],
    }),
  ],
  [
    "messages",
    "messages[0].content[0].source.content[0]",
    (element) => ({
      messages: [{ role: "user", content: [{ type: "document", source: { type: "content", content: [element] } }] }],
    }),
  ],
  ["responses", "input[0]", (element) => ({ input: [element] })],
  ["responses", "input[0].content[0]", (element) => ({ input: [{ role: "user", content: [element] }] })],
  [
    "responses",
    "input[0].output[0]",
    (element) => ({ input: [{ type: "function_call_output", call_id: "c", output: [element] }] }),
  ],
  ["chat", "tools[0]", (element) => ({ messages: [user], tools: [element] })],
  ["messages", "tools[0]", (element) => ({ messages: [user], tools: [element] })],
  ["responses", "tools[0]", (element) => ({ input: "x", tools: [element] })],
  ["completions", "prompt[0]", (element) => ({ prompt: [element] })],
  ["embeddings", "input[0]", (element) => ({ input: [element] })],
  ["embeddings", "input[0].content[0]", (element) => ({ input: [{ content: [element] }] })],
  [
    "chat",
    "messages[0].tool_calls[0]",
    (element) => ({ messages: [{ role: "assistant", content: "x", tool_calls: [element] }, user] }),
  ],
  [
    "chat",
    "messages[0].reasoning_details[0]",
    (element) => ({ messages: [{ role: "assistant", content: "x", reasoning_details: [element] }, user] }),
  ],
  ["chat", "documents[0]", (element) => ({ messages: [user], documents: [element] })],
];

describe("under a limit", () => {
  it.each(PLACES)("%s, refuses at %s each element that may name what the upstream holds", (family, place, bodyWith) => {
    for (const element of REFERENCES) expectRefused(family, bodyWith(element), place);
  });

  it("refuses a list of media in the place of one, and a file in a source that calls itself a text", () => {
    const png = { url: "https://a.example/b.png" };
    const content = (part: unknown) => ({ messages: [{ role: "user", content: [part] }] });
    const field = (family: Endpoint, part: unknown) => factsOf(family, content(part))?.unbounded?.[0]?.field;
    const files = [{ file_id: "a" }, { file_id: "b" }];
    expect(field("chat", { type: "image_url", image_url: [png, png] })).toBe("messages[0].content[0].image_url");
    expect(field("chat", { type: "file", file: files })).toBe("messages[0].content[0].file");
    expect(field("messages", { type: "image", source: [png, png] })).toBe("messages[0].content[0].source");
    const hidden = { type: "document", source: { type: "text", data: "x", file_id: "file_1" } };
    expect(factsOf("messages", content(hidden))).toMatchObject({ fileParts: 1 });
  });

  it("refuses a list within a list and an object in the place of a plain value", () => {
    expectRefused("chat", { messages: [user], stop: [["x"]] }, "stop");
    // Fallback models spend USD alone; an element among their names may spend anything.
    const models = factsOf("chat", { messages: [user], models: [{ type: "item_reference", id: "msg_1" }, "m-large"] });
    if (models === null) throw new Error("it is read");
    expect(refusalUnder(models, { prompt_tokens: 1e9 })).toMatchObject({ param: "models" });
    const names = factsOf("chat", { messages: [user], models: ["m-large"] });
    expect(names === null ? "" : refusalUnder(names, { prompt_tokens: 1e9 })).toBeNull();
    expectRefused("chat", { messages: [user], user: { id: "user_1" } }, "user");
    expectRefused("chat", { messages: [user], documents: [[{ id: "doc_1" }]] }, "documents[0]");
    expectRefused("chat", { messages: [{ ...user, name: { type: "item_reference", id: "a" } }] }, "messages[0].name");
  });

  it("refuses /query's messages of another type", () => {
    const parsed = parseQuery({ messages: [{ role: "user", type: "item_reference", id: "msg_1" }] });
    if (!parsed.ok) throw new Error("it is read");
    const reason = refusalUnder(parsed.value.facts, LIMITED);
    expect(reason).toMatchObject({ param: "messages[0].type", message: expect.stringContaining("expected message") });
  });

  it("refuses budgets of thoughts that are not below the cap, wherever the cap is", () => {
    const thinking = (budget: unknown) => ({ type: "enabled", budget_tokens: budget });
    const claude = (cap: number | null, budget: unknown) =>
      factsOf("messages", { messages: [user], max_tokens: cap, thinking: thinking(budget) });
    const outcome = (facts: CallFacts | null) => (facts === null ? "" : refusalUnder(facts, LIMITED));
    expect(outcome(claude(2_048, 2_047))).toBeNull();
    expect(outcome(claude(2_048, 2_048))).toMatchObject({ param: "thinking.budget_tokens" });
    expect(outcome(claude(null, 4_095))).toBeNull();
    expect(outcome(claude(null, 4_096))).toMatchObject({ param: "thinking.budget_tokens" });
    expect(outcome(claude(2_048, "9000"))).toMatchObject({ param: "thinking.budget_tokens" });
    const query = (cap: number, params: Record<string, unknown>) => {
      const parsed = parseQuery({ prompt: "x", max_tokens: cap, params });
      return parsed.ok ? outcome(parsed.value.facts) : parsed;
    };
    expect(query(16_000, { thinking: thinking(8_000) })).toBeNull();
    expect(query(100, { thinking: thinking(1_024) })).toMatchObject({ param: "params.thinking.budget_tokens" });
    expect(query(100, { reasoning: { max_tokens: 100 } })).toMatchObject({ param: "params.reasoning.max_tokens" });
  });

  it("refuses beta features that are not listed, in the header and in the body, unless the operator allows them", () => {
    const body = { messages: [user], max_tokens: 5 };
    const listed = "prompt-caching-2024-07-31, interleaved-thinking-2025-05-14,context-1m-2025-08-07";
    const known = factsOf("messages", body, listed);
    const unknown = factsOf("messages", body, `${listed},some-beta-2026-01-01`);
    const inBody = factsOf("messages", { ...body, betas: ["some-beta-2026-01-01"] });
    if (known === null || unknown === null || inBody === null) throw new Error("all are read");
    expect(refusalUnder(known, LIMITED)).toBeNull();
    expect(refusalUnder(unknown, LIMITED)).toMatchObject({
      param: "anthropic-beta",
      message: expect.stringContaining(`add "anthropic-beta.some-beta-2026-01-01" to allow_params`),
    });
    expect(refusalUnder(inBody, LIMITED)).toMatchObject({ param: "betas" });
    for (const facts of [unknown, inBody]) {
      expect(refusalUnder(facts, {})).toBeNull();
      expect(refusalUnder(facts, LIMITED, { allowParams: ["anthropic-beta.some-beta-2026-01-01"] })).toBeNull();
    }
  });
});
