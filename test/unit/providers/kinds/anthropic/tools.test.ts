/** Tools in the chat form at an upstream of Anthropic's protocol, and messages of earlier answers that come back. */
import { describe, expect, it } from "vitest";
import type { CallBody } from "../../../../../src/call.ts";
import { classify } from "../../../../../src/providers/classify.ts";
import { buildAnthropicRequest } from "../../../../../src/providers/kinds/anthropic/request.ts";
import { ARGUMENTS, SPEAKERS } from "../../../../support/speakers.ts";
import { makeAnthropic, makeLease } from "../../make.ts";

const lease = makeLease({ model: "claude-x", capTokens: 64 });
const user = { role: "user", content: "hi" };
const parameters = { type: "object", properties: { zip: { type: "string" } } };
const tool = { type: "function", function: { name: "lookup", description: "d", parameters, strict: true } };

function textOf(body: CallBody): string {
  const built = buildAnthropicRequest(makeAnthropic(), lease, body);
  if (!built.ok) throw new Error(JSON.stringify(built.reason));
  return built.request.body;
}

const bodyOf = (body: CallBody): Record<string, unknown> => JSON.parse(textOf(body));

function refusedParamOf(body: CallBody) {
  const built = buildAnthropicRequest(makeAnthropic(), lease, body);
  return built.ok || built.reason.reason !== "invalid_request" ? null : built.reason.param;
}

describe("tools of a chat completion", () => {
  it("become those of the API, and its own stay as they are", () => {
    const own = { name: "own", input_schema: parameters };
    const bare = { type: "function", function: { name: "bare" }, cache_control: { type: "ephemeral" } };
    expect(bodyOf({ prompt: "hi", params: { tools: [tool, own, bare], top_k: 4 } })).toMatchObject({
      top_k: 4,
      tools: [
        { name: "lookup", description: "d", input_schema: parameters, strict: true },
        own,
        { name: "bare", input_schema: { type: "object", properties: {} }, cache_control: { type: "ephemeral" } },
      ],
    });
  });

  it.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [
      { type: "function", function: { name: "lookup" } },
      { type: "tool", name: "lookup" },
    ],
    [
      { type: "tool", name: "lookup" },
      { type: "tool", name: "lookup" },
    ],
  ])("are chosen by %j as by %j", (choice, expected) => {
    expect(bodyOf({ prompt: "hi", params: { tools: [tool], tool_choice: choice } })["tool_choice"]).toEqual(expected);
  });

  it("are called one by one if the request says so", () => {
    const choiceOf = (params: Record<string, unknown>) => bodyOf({ prompt: "hi", params })["tool_choice"];
    const serial = { parallel_tool_calls: false };
    expect(choiceOf({ tools: [tool], ...serial })).toEqual({ type: "auto", disable_parallel_tool_use: true });
    expect(choiceOf({ tools: [tool], tool_choice: "required", ...serial })).toEqual({
      type: "any",
      disable_parallel_tool_use: true,
    });
    expect(choiceOf({ tools: [tool], tool_choice: "none", ...serial })).toEqual({ type: "none" });
    expect(choiceOf({ ...serial })).toBeUndefined();
    expect(bodyOf({ prompt: "hi", params: { tools: [tool], parallel_tool_calls: true } })).not.toHaveProperty(
      "parallel_tool_calls",
    );
  });

  it.each([
    ["params.tools[1].type", { tools: [tool, { type: "custom", custom: { name: "free" } }] }],
    ["params.tool_choice", { tools: [tool], tool_choice: "sometimes" }],
    ["params.tool_choice.type", { tools: [tool], tool_choice: { type: "allowed_tools", allowed_tools: {} } }],
  ])("are refused at %s where the API has no such form", (param, params) => {
    expect(refusedParamOf({ prompt: "hi", params })).toBe(param);
  });
});

describe("the conversation after an answer that called tools", () => {
  const asked = {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "a", type: "function", function: { name: "lookup", arguments: ARGUMENTS } },
      { id: "b", type: "function", function: { name: "now", arguments: "" } },
    ],
  };
  const result = (id: string, content: unknown) => ({ role: "tool", tool_call_id: id, content });

  it("has the results of one turn in one message, and inputs whose every byte is that of the arguments", () => {
    const parts = [{ type: "text", text: "12" }];
    const messages = [user, asked, result("a", "11"), result("b", parts), { role: "user", content: "go on" }];
    expect(textOf({ messages })).toContain(`"input":${ARGUMENTS}}`);
    expect(bodyOf({ messages })["messages"]).toMatchObject([
      user,
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "a", name: "lookup" },
          { type: "tool_use", id: "b", name: "now", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "11" },
          { type: "tool_result", tool_use_id: "b", content: parts },
        ],
      },
      { role: "user", content: "go on" },
    ]);
  });

  it.each(SPEAKERS.filter(({ kind }) => kind === "anthropic"))(
    "is what the API sent, for $name",
    ({ body, message }) => {
      const answer = { status: 200, headers: new Headers(), nowMs: 0, body: { ok: true, text: body } as const };
      const outcome = classify(makeAnthropic(), "m", answer);
      const chat: unknown = JSON.parse((outcome.kind === "success" ? outcome.parts?.message : undefined) ?? "null");
      const sent = textOf({ messages: [user, chat] });
      // Byte for byte, but for the gaps between values of the input, which are kept too.
      expect(sent).toContain(`{"role":"assistant","content":${message}}`);
    },
  );

  it("keeps a refusal", () => {
    const refused = { role: "assistant", content: "", refusal: "No." };
    expect(bodyOf({ messages: [user, refused, user] })["messages"]).toEqual([
      user,
      { role: "assistant", content: [{ type: "text", text: "No." }] },
      user,
    ]);
  });
});
