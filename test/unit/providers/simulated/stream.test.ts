import { describe, expect, it } from "vitest";
import { split } from "../../../../src/providers/simulated/stream.ts";
import type { SimulatedEndpoint } from "../../../../src/providers/simulated/provider.ts";
import { bodyOf, instantly, post, postJson, postStream, STREAMED } from "./requests.ts";

const PROMPT = "Seven  wörter — and a 🦊 at its\nend.";

type Event = Awaited<ReturnType<typeof postStream>>[number];

/** The piece of text in an event; empty if it has none. */
function pieceIn(endpoint: SimulatedEndpoint, event: Event): string {
  switch (endpoint) {
    case "chat":
      return event.choices?.[0]?.delta.content ?? "";
    case "completions":
      return event.choices?.[0]?.text ?? "";
    case "messages":
      return event.delta?.text ?? "";
    default:
      return event.delta ?? "";
  }
}

const piecesOf = (endpoint: SimulatedEndpoint, events: readonly Event[]): string[] =>
  events.map((event) => pieceIn(endpoint, event)).filter((piece) => piece !== "");

const LAST = { chat: "[DONE]", completions: "[DONE]", responses: "response.completed", messages: "message_stop" };

const nameOf = (event: Event): string => (typeof event === "string" ? event : event.type);

describe("every simulated stream", () => {
  it.each(STREAMED)("of %s has the text of the JSON answer in its deltas", async (endpoint) => {
    const events = await postStream(endpoint, bodyOf(endpoint, "echo", PROMPT));
    const pieces = piecesOf(endpoint, events);
    expect(pieces.join("")).toBe(PROMPT);
    expect(pieces.length).toBe(8);
    expect(nameOf(events.at(-1))).toBe(LAST[endpoint]);
  });

  it.each(STREAMED)("of %s breaks off before its end, even if it is short", async (endpoint) => {
    const whole = await postStream(endpoint, bodyOf(endpoint, "echo", PROMPT));
    for (const [breakAfter, pieces] of [
      [0, 0],
      [2, 2],
      [8, 8],
      [9, 8],
    ]) {
      const model = `echo?break_after=${breakAfter}`;
      const events = await postStream(endpoint, bodyOf(endpoint, model, PROMPT));
      expect(piecesOf(endpoint, events)).toEqual(piecesOf(endpoint, whole).slice(0, pieces));
      if (breakAfter !== 0) expect(pieceIn(endpoint, events.at(-1))).not.toBe("");
    }
  });

  it.each(STREAMED)("of %s pauses between deltas, not before the first or after the last", async (endpoint) => {
    const sleptMs: number[] = [];
    const model = "echo?ms=9&chunk_ms=20&chunks=3";
    const events = await postStream(endpoint, bodyOf(endpoint, model, PROMPT), instantly(sleptMs));
    expect(piecesOf(endpoint, events)).toHaveLength(3);
    expect(sleptMs).toEqual([9, 20, 20]);
  });

  it.each(STREAMED)("of %s has no delta if the answer is empty", async (endpoint) => {
    const events = await postStream(endpoint, bodyOf(endpoint, "echo", ""));
    expect(piecesOf(endpoint, events)).toEqual([]);
    expect(nameOf(events.at(-1))).toBe(LAST[endpoint]);
  });

  it.each(STREAMED)("of %s fails before its first event", async (endpoint) => {
    const response = await post(endpoint, { ...bodyOf(endpoint, "fail?status=503", "a"), stream: true });
    expect([response.status, response.headers.get("content-type")]).toEqual([503, "application/json"]);
  });

  it("writes no event before it is read", async () => {
    const sleptMs: number[] = [];
    const deps = instantly(sleptMs);
    const { body } = await post("chat", { ...bodyOf("chat", "echo?chunk_ms=5", PROMPT), stream: true }, deps);
    const reader = body?.getReader();
    for (let event = 0; event < 4; event++) await reader?.read();
    // The role, then three pieces with two pauses between them.
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(sleptMs).toEqual([5, 5]);
  });

  it.each(["abort", "cancel"] as const)("ends during a pause on %s, and stops its timer", async (how) => {
    const over = new AbortController();
    const paused = Promise.withResolvers<void>();
    let stopped = false;
    const { body } = await post(
      "chat",
      { ...bodyOf("chat", "echo?chunk_ms=5", PROMPT), stream: true },
      {
        ...instantly(),
        signal: over.signal,
        timer: () => {
          paused.resolve();
          return () => void (stopped = true);
        },
      },
    );
    const reader = body?.getReader();
    await reader?.read();
    await reader?.read();
    const pending = reader?.read();
    await paused.promise;
    if (how === "abort") {
      over.abort(new Error("gone"));
      await expect(pending).rejects.toThrow("gone");
    } else {
      await reader?.cancel();
      expect(await pending).toEqual({ done: true, value: undefined });
    }
    expect(stopped).toBe(true);
  });

  it("sends nothing more after an abort between two reads", async () => {
    const over = new AbortController();
    const { body } = await post(
      "chat",
      { ...bodyOf("chat", "echo", PROMPT), stream: true },
      { ...instantly(), signal: over.signal },
    );
    const reader = body?.getReader();
    await reader?.read();
    over.abort(new Error("gone"));
    await expect(reader?.read()).rejects.toThrow("gone");
  });
});

describe("a simulated chat stream", () => {
  it("begins with the role and ends with the finish reason", async () => {
    const events = await postStream("chat", { ...bodyOf("chat", "echo", "abcdefgh"), max_tokens: 1 });
    expect(events[0]).toEqual({
      id: expect.stringMatching(/^chatcmpl-sim-/),
      object: "chat.completion.chunk",
      created: 1_000,
      model: "echo",
      choices: [
        { index: 0, delta: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: null },
      ],
    });
    expect(events.at(-2).choices).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: "length" }]);
  });

  it.each(["chat", "completions"] as const)("of %s has the usage chunk only if it is requested", async (endpoint) => {
    const body = bodyOf(endpoint, "echo", PROMPT);
    const { json } = await postJson(endpoint, body);
    const asked = await postStream(endpoint, { ...body, stream_options: { include_usage: true } });
    expect(asked.at(-2)).toMatchObject({ choices: [], usage: json.usage });
    expect(asked.slice(0, -2).every(({ usage }) => usage === null)).toBe(true);

    const unasked = await postStream(endpoint, { ...body, stream_options: { include_usage: false } });
    expect(unasked).toHaveLength(asked.length - 1);
    expect(unasked.slice(0, -1).every((event) => !("usage" in event) && event.choices.length === 1)).toBe(true);
  });

  it("alternates between its choices and ends each of them", async () => {
    const events = await postStream("chat", { ...bodyOf("chat", "echo?chunks=2", "one two"), n: 2 });
    const choices = events.slice(0, -1).map(({ choices: [{ index, delta, finish_reason: reason }] }) => {
      return [index, delta.content, reason];
    });
    expect(choices).toEqual([
      [0, "", null],
      [1, "", null],
      [0, "one", null],
      [1, "one", null],
      [0, " two", null],
      [1, " two", null],
      [0, undefined, "stop"],
      [1, undefined, "stop"],
    ]);
  });
});

describe("a simulated Responses stream", () => {
  it("has every event of a text, numbered, and the whole response in the last one", async () => {
    const body = bodyOf("responses", "echo?chunks=2", "one two");
    const events = await postStream("responses", body);
    expect(events.map(nameOf)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
    expect(events[0].response).toMatchObject({ status: "in_progress", output: [], usage: null });
    expect(events.at(-1).response).toEqual((await postJson("responses", body)).json);
  });

  it("ends as incomplete once cut", async () => {
    const events = await postStream("responses", { ...bodyOf("responses", "echo", "abcdefgh"), max_output_tokens: 1 });
    expect(nameOf(events.at(-1))).toBe("response.incomplete");
  });
});

describe("a simulated messages stream", () => {
  it("has every event of a message, with usage in the first and the last", async () => {
    const events = await postStream("messages", bodyOf("messages", "echo?chunks=2", "one two"));
    expect(events.map(nameOf)).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(events[0].message).toMatchObject({ content: [], stop_reason: null, usage: { input_tokens: 2 } });
    expect(events[6]).toMatchObject({
      delta: { stop_reason: "end_turn" },
      usage: { input_tokens: 2, output_tokens: 2 },
    });
  });
});

describe("split", () => {
  it.each([
    ["", 8, []],
    [" a  b ", 3, [" a", "  b", " "]],
    ["a b c d", 2, ["a b", " c d"]],
    ["a b c d e f g h i", 8, ["a", " b", " c", " d", " e", " f", " g", " h i"]],
    ["🦊🦊🦊", 8, ["🦊", "🦊", "🦊"]],
    ["a b c", 8, ["a", " ", "b", " ", "c"]],
    ["   ", 1, ["   "]],
  ])("cuts %j into at most %d pieces", (text, most, pieces) => {
    expect(split(text, most)).toEqual(pieces);
  });

  it("cuts a long text into ten thousand deltas", () => {
    const text = "word ".repeat(10_000);
    const pieces = split(text, 10_000);
    expect(pieces).toHaveLength(10_000);
    expect(pieces.join("")).toBe(text);
  });
});
