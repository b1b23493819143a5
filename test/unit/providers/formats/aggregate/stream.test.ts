import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { aggregateStream as aggregate } from "../../../../../src/providers/formats/aggregate/stream.ts";
import { bytesOf } from "../../relay/make.ts";

/** The aggregated answer, parsed. */
function aggregateStream(...args: Parameters<typeof aggregate>) {
  const aggregated = aggregate(...args);
  return aggregated.kind === "answer" ? { kind: "answer" as const, json: jsonIn(aggregated.text) } : aggregated;
}

function jsonIn(text: string): unknown {
  return JSON.parse(text);
}

type Json = Record<string, unknown>;

const event = (data: unknown, name = ""): string =>
  `${name === "" ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** A text cut at some of its characters, never inside one; an empty text is one empty piece. */
const pieces = (text: string, size: number): string[] => {
  const characters = [...text];
  if (characters.length === 0) return [""];
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(""),
  );
};

// ---- chat completions: the answer, and the stream of the same answer ----

const HEAD = {
  id: "chatcmpl-1",
  created: 1763712000,
  model: "gpt-x-2026",
  service_tier: "default",
  system_fingerprint: "fp",
};
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

type Call = { id: string; name: string; arguments: string };
type Choice = { content: string | null; reasoning: string | null; calls: Call[]; logprobs: boolean; finish: string };

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const choice: fc.Arbitrary<Choice> = fc.record({
  content: fc.option(text),
  reasoning: fc.option(fc.string({ minLength: 1, maxLength: 8 })),
  calls: fc.array(fc.record({ id: fc.uuid(), name: fc.constantFrom("find", "add"), arguments: fc.json() }), {
    maxLength: 3,
  }),
  logprobs: fc.boolean(),
  finish: fc.constantFrom("stop", "length", "tool_calls"),
});

function chatAnswer(choices: Choice[]): Json {
  return {
    ...HEAD,
    object: "chat.completion",
    choices: choices.map(({ content, reasoning, calls, logprobs, finish }, index) => ({
      index,
      message: {
        role: "assistant",
        content,
        refusal: null,
        ...(reasoning === null ? {} : { reasoning_content: reasoning }),
        ...(calls.length === 0
          ? {}
          : { tool_calls: calls.map(({ id, ...fn }) => ({ id, type: "function", function: fn })) }),
      },
      logprobs: logprobs
        ? { content: [...(content ?? "")].map((token) => ({ token, logprob: -1 })), refusal: null }
        : null,
      finish_reason: finish,
    })),
    usage: USAGE,
  };
}

function chatEvents(choices: Choice[], size: number): string[] {
  const deltas = choices.map(({ content, reasoning, calls, logprobs, finish }, index) => {
    const chunk = (delta: Json, more: Json = {}) => ({ index, delta, logprobs: null, finish_reason: null, ...more });
    const logged = (piece: string) =>
      logprobs ? { logprobs: { content: [...piece].map((token) => ({ token, logprob: -1 })), refusal: null } } : {};
    return [
      chunk({ role: "assistant", content: content === null ? null : "", refusal: null }, logged("")),
      ...(reasoning === null ? [] : pieces(reasoning, size).map((piece) => chunk({ reasoning_content: piece }))),
      ...(content === null ? [] : pieces(content, size).map((piece) => chunk({ content: piece }, logged(piece)))),
      ...calls.flatMap(({ id, name, arguments: json }, at) => [
        chunk({ tool_calls: [{ index: at, id, type: "function", function: { name, arguments: "" } }] }),
        ...pieces(json, size).map((piece) => chunk({ tool_calls: [{ index: at, function: { arguments: piece } }] })),
      ]),
      chunk({}, { finish_reason: finish }),
    ];
  });
  // Choices are identified by their index, in any order.
  const longest = Math.max(...deltas.map(({ length }) => length));
  const mixed = Array.from({ length: longest }, (_, at) => deltas.flatMap((each) => each.slice(at, at + 1))).flat();
  const frame = (more: Json) =>
    event({ ...HEAD, object: "chat.completion.chunk", usage: null, obfuscation: "xY", ...more });
  return [...mixed.map((each) => frame({ choices: [each] })), frame({ choices: [], usage: USAGE }), event("[DONE]")];
}

// ---- messages ----

type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "tool_use"; id: string; name: string; input: Json };

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text }),
  fc.record({ type: fc.constant("thinking" as const), thinking: text, signature: fc.base64String() }),
  fc.record({
    type: fc.constant("tool_use" as const),
    id: fc.uuid(),
    name: fc.constantFrom("find", "add"),
    input: fc.dictionary(fc.string({ unit: fc.constantFrom("a", "b") }), fc.oneof(fc.integer(), text), { maxKeys: 3 }),
  }),
);

const MESSAGE = { id: "msg_1", type: "message", role: "assistant", model: "claude-x" };

function messageAnswer(content: Block[]): Json {
  const usage = { input_tokens: 25, cache_read_input_tokens: 3, output_tokens: 15, service_tier: "standard" };
  return { ...MESSAGE, content, stop_reason: "end_turn", stop_sequence: null, usage };
}

function messageEvents(content: Block[], size: number): string[] {
  const usage = { input_tokens: 25, cache_read_input_tokens: 3, output_tokens: 1, service_tier: "standard" };
  const named = (data: Json) => event(data, String(data["type"]));
  const blocks = content.flatMap((each, index) => {
    const delta = (fields: Json) => named({ type: "content_block_delta", index, delta: fields });
    const begun = (fields: Json) => named({ type: "content_block_start", index, content_block: fields });
    const ended = named({ type: "content_block_stop", index });
    if (each.type === "text") {
      return [
        begun({ type: "text", text: "" }),
        ...pieces(each.text, size).map((piece) => delta({ type: "text_delta", text: piece })),
        ended,
      ];
    }
    if (each.type === "thinking") {
      const thoughts = pieces(each.thinking, size).map((piece) => delta({ type: "thinking_delta", thinking: piece }));
      const signed = delta({ type: "signature_delta", signature: each.signature });
      return [begun({ type: "thinking", thinking: "", signature: "" }), ...thoughts, signed, ended];
    }
    const { input, ...rest } = each;
    const json = Object.keys(input).length === 0 ? [] : pieces(JSON.stringify(input), size);
    return [
      begun({ ...rest, input: {} }),
      ...json.map((piece) => delta({ type: "input_json_delta", partial_json: piece })),
      ended,
    ];
  });
  return [
    named({
      type: "message_start",
      message: { ...MESSAGE, content: [], stop_reason: null, stop_sequence: null, usage },
    }),
    named({ type: "ping" }),
    ...blocks,
    named({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 15 },
    }),
    named({ type: "message_stop" }),
  ];
}

// ---- what holds of both ----

const choices = fc.array(choice, { minLength: 1, maxLength: 3 });
const blocks = fc.array(block, { minLength: 1, maxLength: 3 });
const size = fc.integer({ min: 1, max: 5 });
const framing = fc.constantFrom("\n", "\r\n", "\r");
const framed = (events: readonly string[], lineEnd: string, comments: boolean): Uint8Array =>
  bytesOf(
    events
      .map((each) => (comments ? `: keep-alive\n\n${each}` : each))
      .join("")
      .replaceAll("\n", lineEnd),
  );

const CALL = { id: "a", name: "f", arguments: '{"x":"😀"}' };
const SHORT: Choice = { content: 'h\u00e9 "😀"', reasoning: "hm", calls: [CALL], logprobs: false, finish: "stop" };

const FAMILIES = {
  chat: {
    made: fc.tuple(choices, size).map(([of, by]) => ({ answer: chatAnswer(of), events: chatEvents(of, by) })),
    events: chatEvents([SHORT], 2),
  },
  messages: {
    made: fc.tuple(blocks, size).map(([of, by]) => ({ answer: messageAnswer(of), events: messageEvents(of, by) })),
    events: messageEvents(
      [
        { type: "text", text: "h\u00e9 😀" },
        { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
      ],
      2,
    ),
  },
} as const;

describe.each(["chat", "messages"] as const)("a stream of %s", (family) => {
  const { made } = FAMILIES[family];

  it("gives the answer that its upstream would have sent as JSON", () => {
    fc.assert(
      fc.property(made, framing, fc.boolean(), ({ answer, events }, lineEnd, comments) => {
        const aggregated = aggregateStream(family, framed(events, lineEnd, comments), "clean");
        expect(aggregated).toEqual({ kind: "answer", json: answer });
      }),
    );
  });

  it(
    "is whole if only its last line end is missing, or if its connection breaks after its end",
    { tags: ["slow"] },
    () => {
      fc.assert(
        fc.property(made, ({ answer, events }) => {
          const bytes = framed(events, "\n", false);
          expect(aggregateStream(family, bytes.subarray(0, -1), "clean")).toEqual({ kind: "answer", json: answer });
          expect(aggregateStream(family, bytes, "broken")).toEqual({ kind: "answer", json: answer });
        }),
      );
    },
  );

  it("is truncated if it breaks off at any byte before its end, with no more than had arrived", () => {
    const { events } = FAMILIES[family];
    const bytes = framed(events, "\n", false);
    const last = bytesOf(events.at(-1) ?? "").length;
    let before = 0;
    for (let at = 0; at < bytes.length - last; at++) {
      const aggregated = aggregateStream(family, bytes.subarray(0, at), "broken");
      if (aggregated.kind !== "truncated") throw new Error(`cut at ${at}, it passes for whole`);
      const { contentBytes } = aggregated.arrived;
      expect(contentBytes).toBeGreaterThanOrEqual(before);
      before = contentBytes;
    }
    expect(before).toBeGreaterThan(0);
  });
});

describe("a chat stream whose connection closes in order", () => {
  const whole: Choice = { content: "a", reasoning: null, calls: [], logprobs: false, finish: "stop" };

  it("is whole without [DONE] once every choice has ended, with its usage if that arrived", () => {
    const events = chatEvents([whole, whole], 1);
    const json = chatAnswer([whole, whole]);
    expect(aggregateStream("chat", bytesOf(events.slice(0, -1).join("")), "clean")).toEqual({ kind: "answer", json });
    const unnamed = aggregateStream("chat", bytesOf(events.slice(0, -2).join("")), "clean");
    expect(unnamed).toEqual({ kind: "answer", json: { ...json, usage: null } });
  });

  it("is truncated while a choice has not ended, and if nothing arrived", () => {
    const events = chatEvents([whole, whole], 1);
    expect(aggregateStream("chat", bytesOf(events.slice(0, -3).join("")), "clean")).toMatchObject({
      kind: "truncated",
    });
    expect(aggregateStream("chat", new Uint8Array(0), "clean")).toEqual({
      kind: "truncated",
      arrived: { promptTokens: null, completionTokens: null, contentBytes: 0 },
    });
  });
});

describe("the mark at the end of a chat stream", () => {
  it.each(["data: [DONE]\n\n", "data:[DONE]\r\n\r\n"])("is never parsed as JSON, which would throw: %j", (mark) => {
    const parse = vi.spyOn(JSON, "parse");
    const ended = event({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] });
    expect(aggregate("chat", bytesOf(ended + mark), "broken").kind).toBe("answer");
    expect(parse.mock.results.map(({ type }) => type)).not.toContain("throw");
    parse.mockRestore();
  });
});

describe("tool calls", () => {
  const call = (fields: Json) =>
    event({ choices: [{ index: 0, delta: { tool_calls: [fields] }, finish_reason: null }] });
  const end = event({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] });
  const callsOf = (...events: string[]) => {
    const aggregated = aggregateStream("chat", bytesOf([...events, end].join("")), "clean");
    return aggregated.kind === "answer" ? aggregated.json : null;
  };

  it("with different ids are different calls, even if a server gives them one index", () => {
    const made = (id: string) => call({ index: 0, id, type: "function", function: { name: "f", arguments: "{}" } });
    const whole = { type: "function", function: { name: "f", arguments: "{}" } };
    expect(callsOf(made("a"), made("b"))).toMatchObject({
      choices: [
        {
          message: {
            tool_calls: [
              { id: "a", ...whole },
              { id: "b", ...whole },
            ],
          },
        },
      ],
    });
  });

  it("whose every delta repeats id and name are one call", () => {
    const piece = (json: string) =>
      call({ index: 0, id: "a", type: "function", function: { name: "f", arguments: json } });
    const whole = { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } };
    expect(callsOf(piece('{"x"'), piece(":1}"))).toMatchObject({ choices: [{ message: { tool_calls: [whole] } }] });
  });
});

describe("an error inside a stream", () => {
  const delta = event({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }] });
  const error = { message: "busy", code: 503 };

  it.each([
    ["chat", event({ error }), { error }],
    ["chat", event(error, "error"), { error }],
    ["chat", event("overloaded", "error"), { error: { message: "overloaded" } }],
    [
      "messages",
      event({ type: "error", error: { type: "overloaded_error", message: "busy" } }, "error"),
      { error: { type: "overloaded_error", message: "busy" } },
    ],
  ] as const)("of %s before any part of the answer is returned alone: %s", (family, events, json) => {
    expect(aggregateStream(family, bytesOf(events), "clean")).toEqual({ kind: "answer", json });
  });

  it("after a part of the answer is returned with that part, however the stream continues", () => {
    for (const more of ["", event("[DONE]")]) {
      const aggregated = aggregateStream("chat", bytesOf(delta + event({ error }) + more), "clean");
      expect(aggregated).toMatchObject({ json: { error, choices: [{ message: { content: "a" } }] } });
    }
    const inChoice = event({ choices: [{ index: 0, error, delta: { content: "" }, finish_reason: "error" }] });
    expect(aggregateStream("chat", bytesOf(delta + inChoice), "clean")).toMatchObject({
      json: { choices: [{ error }] },
    });
  });
});
