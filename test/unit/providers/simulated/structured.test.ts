import { describe, expect, it } from "vitest";
import { bodyOf, instantly, post, postJson, postStream } from "./requests.ts";

const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 9 } },
  required: ["city", "days"],
  additionalProperties: false,
};

const FORMATS = {
  chat: { response_format: { type: "json_schema", json_schema: { name: "trip", schema: SCHEMA } } },
  responses: { text: { format: { type: "json_schema", name: "trip", schema: SCHEMA } } },
  messages: { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
};

const PROTOCOLS = ["chat", "responses", "messages"] as const;
type StructuredProtocol = (typeof PROTOCOLS)[number];

const TOOLS = {
  chat: [
    { type: "function", function: { name: "plan", parameters: SCHEMA } },
    { type: "function", function: { name: "ping" } },
  ],
  responses: [
    { type: "function", name: "plan", parameters: SCHEMA },
    { type: "function", name: "ping" },
  ],
  messages: [
    { name: "plan", input_schema: SCHEMA },
    { name: "ping", input_schema: { type: "object" } },
  ],
};

const FORCED = { chat: "required", responses: "required", messages: { type: "any" } };
const NAMED = {
  chat: { type: "function", function: { name: "ping" } },
  responses: { type: "function", name: "ping" },
  messages: { type: "tool", name: "ping" },
};

const FITTING = { city: "Rome", days: expect.toSatisfy((days) => Number.isInteger(days) && days >= 1 && days <= 9) };

type Answer = Awaited<ReturnType<typeof postJson>>["json"];

function textOf(protocol: StructuredProtocol, json: Answer): string | null {
  if (protocol === "chat") return json.choices[0].message.content;
  return protocol === "responses" ? (json.output[0].content?.[0].text ?? null) : (json.content[0].text ?? null);
}

/** Name, parsed arguments and the reason for the end. */
function callOf(protocol: StructuredProtocol, json: Answer): unknown[] {
  if (protocol === "chat") {
    const [{ message, finish_reason }] = json.choices;
    const [call] = message.tool_calls;
    return [call.function.name, JSON.parse(call.function.arguments), finish_reason];
  }
  if (protocol === "responses") return [json.output[0].name, JSON.parse(json.output[0].arguments), json.output[0].type];
  return [json.content[0].name, json.content[0].input, json.stop_reason];
}

const ENDED = { chat: "tool_calls", responses: "function_call", messages: "tool_use" };

/** The conversation after the call of an answer: what the client sends once its tool has run. */
function withResult(protocol: StructuredProtocol, json: Answer, result: string): Record<string, unknown> {
  if (protocol === "chat") {
    const [{ message }] = json.choices;
    const answer = { role: "tool", tool_call_id: message.tool_calls[0].id, content: result };
    return { messages: [{ role: "user", content: "Rome" }, message, answer] };
  }
  if (protocol === "responses") {
    const answer = { type: "function_call_output", call_id: json.output[0].call_id, output: result };
    return { input: [{ role: "user", content: "Rome" }, json.output[0], answer] };
  }
  const answer = { type: "tool_result", tool_use_id: json.content[0].id, content: [{ type: "text", text: result }] };
  const asked = { role: "user", content: "Rome" };
  return { messages: [asked, { role: "assistant", content: json.content }, { role: "user", content: [answer] }] };
}

describe.each(PROTOCOLS)("simulated %s", (protocol) => {
  const bodyWith = (more: object, model = "echo") => ({ ...bodyOf(protocol, model, "Rome"), ...more });
  const tools = { tools: TOOLS[protocol] };

  it("answers with JSON that follows the request's schema, the same for the same prompt", async () => {
    const { json } = await postJson(protocol, bodyWith(FORMATS[protocol]));
    expect(JSON.parse(textOf(protocol, json) ?? "")).toEqual(FITTING);
    const again = await postJson(protocol, bodyWith(FORMATS[protocol], "json"));
    expect(again.status).toBe(200);
    expect((await postJson(protocol, bodyWith(FORMATS[protocol]))).json).toEqual(json);
  });

  it("refuses a schema that it cannot follow", async () => {
    const asText = JSON.stringify(FORMATS[protocol]).replaceAll('"type":"integer"', '"not":{}');
    const { status, json } = await postJson(protocol, bodyWith(JSON.parse(asText)));
    expect([status, json.error.message]).toEqual([400, expect.stringContaining("not at $.days")]);
  });

  it("calls the first tool if a call is required, and answers once it has the result", async () => {
    const body = bodyWith({ ...tools, tool_choice: FORCED[protocol] });
    const { json } = await postJson(protocol, body);
    expect(callOf(protocol, json)).toEqual(["plan", FITTING, ENDED[protocol]]);
    const after = await postJson(protocol, { ...body, ...withResult(protocol, json, "all sunny") });
    expect(textOf(protocol, after.json)).toBe("all sunny");
  });

  it("calls the tool that is named", async () => {
    const { json } = await postJson(protocol, bodyWith({ ...tools, tool_choice: NAMED[protocol] }));
    expect(callOf(protocol, json)).toEqual(["ping", {}, ENDED[protocol]]);
  });

  it("answers in text without a required call, and as often with calls as the model says", async () => {
    expect(textOf(protocol, (await postJson(protocol, bodyWith(tools))).json)).toBe("Rome");
    const body = bodyWith(tools, "echo?calls=1");
    const { json } = await postJson(protocol, body);
    expect(callOf(protocol, json)[0]).toBe("plan");
    const after = { ...body, ...withResult(protocol, json, "sunny") };
    expect(textOf(protocol, (await postJson(protocol, after)).json)).toBe("sunny");
    const second = await postJson(protocol, { ...after, model: "echo?calls=2" });
    expect(callOf(protocol, second.json)[0]).toBe("ping");
  });

  it("refuses a required call of a tool that is not there", async () => {
    const statuses = [FORCED[protocol], NAMED[protocol], "sometimes"].map(
      async (choice) => (await postJson(protocol, bodyWith({ tools: [], tool_choice: choice }))).status,
    );
    expect(await Promise.all(statuses)).toEqual([400, 400, 400]);
  });

  it("cuts the arguments of a call to the completion cap, and counts them", async () => {
    const capField = protocol === "responses" ? "max_output_tokens" : "max_tokens";
    const { json } = await postJson(protocol, bodyWith({ ...tools, tool_choice: FORCED[protocol], [capField]: 2 }));
    const usage = json.usage.completion_tokens ?? json.usage.output_tokens;
    const end = json.choices?.[0].finish_reason ?? json.stop_reason ?? json.incomplete_details.reason;
    expect([usage, end]).toEqual([
      2,
      { chat: "length", responses: "max_output_tokens", messages: "max_tokens" }[protocol],
    ]);
  });

  it("streams the same call", async () => {
    const events = await postStream(protocol, bodyWith({ ...tools, tool_choice: FORCED[protocol] }));
    const pieces = events.map((event) => {
      if (protocol === "chat") return event.choices?.[0]?.delta.tool_calls?.[0].function.arguments ?? "";
      if (protocol === "responses") return event.type === "response.function_call_arguments.delta" ? event.delta : "";
      return event.delta?.partial_json ?? "";
    });
    expect(JSON.parse(pieces.join(""))).toEqual(FITTING);
    expect(JSON.stringify(events)).toContain('"plan"');
    expect(JSON.stringify(events.slice(-3))).toContain(protocol === "responses" ? "function_call" : ENDED[protocol]);
  });

  it("gives the share of invalid answers that the model says, and a valid one when asked again", async () => {
    const isValid = async (prompt: string, attempt: number) => {
      const body = { ...bodyOf(protocol, "echo?invalid=0.2&invalid_times=1", prompt), ...FORMATS[protocol] };
      const json = JSON.parse(await (await post(protocol, body, { ...instantly(), attempt })).text());
      try {
        return typeof JSON.parse(textOf(protocol, json) ?? "").city === "string";
      } catch {
        return false;
      }
    };
    const prompts = Array.from({ length: 500 }, (_, index) => `city ${index}`);
    const first = await Promise.all(prompts.map((prompt) => isValid(prompt, 1)));
    const invalid = first.filter((valid) => !valid).length;
    expect(invalid).toBeGreaterThan(70);
    expect(invalid).toBeLessThan(130);
    expect(await Promise.all(prompts.map((prompt) => isValid(prompt, 2)))).not.toContain(false);
  });
});

it("a conversation in which the model has answered counts as asked again", async () => {
  const response_format = FORMATS.chat.response_format;
  const messages = [
    { role: "user", content: "Rome" },
    { role: "assistant", content: "no JSON" },
    { role: "user", content: "Follow the schema." },
  ];
  const model = "echo?invalid=1&invalid_times=1";
  const [first] = (await postJson("chat", { model, messages: messages.slice(0, 1), response_format })).json.choices;
  expect(first.message.content).not.toContain('"city"');
  const [second] = (await postJson("chat", { model, messages, response_format })).json.choices;
  expect(JSON.parse(second.message.content).city).toBe("Follow the schema.");
});

it("json_object gives an object", async () => {
  const { json } = await postJson("chat", {
    ...bodyOf("chat", "echo", "a b"),
    response_format: { type: "json_object" },
  });
  expect(JSON.parse(json.choices[0].message.content)).toEqual({ echo: "a b", words: 2 });
});

it("allowed_tools narrow the choice, and require a call if they say so", async () => {
  const body = bodyOf("chat", "echo", "a");
  const names = [{ type: "function", function: { name: "ping" } }];
  const choice = (mode: string) => ({ type: "allowed_tools", allowed_tools: { mode, tools: names } });
  const required = await postJson("chat", { ...body, tools: TOOLS.chat, tool_choice: choice("required") });
  expect(callOf("chat", required.json)[0]).toBe("ping");
  const auto = await postJson("chat", { ...body, tools: TOOLS.chat, tool_choice: choice("auto") });
  expect(textOf("chat", auto.json)).toBe("a");
});
