/** What makes two requests equal on a tape. */
import { describe, expect, it } from "vitest";
import { callRequest, keptRequest, relayedRequest, requestText } from "../../../src/recordings/request.ts";
import { CASSETTE_CUT_CHARS, CASSETTE_REQUEST_CHARS_MAX } from "../../../src/limits.ts";

const call = (...args: Parameters<typeof callRequest>): string => requestText(callRequest(...args));
const chat = (json: string, more: object = {}): string =>
  requestText(relayedRequest({ endpoint: "chat", model: "m", json, ...more }));

describe("native calls", () => {
  it("are equal with a prompt and with the same user message", () => {
    const messages = [{ role: "user", content: "hi" }];
    expect(call({ prompt: "hi" }, "m", null)).toBe(call({ messages }, "m", null));
  });

  it("differ by model, cap, temperature, system, parameters and context", () => {
    const context = { id: "ctx_1", from: 0, to: 9, place: "prompt" } as const;
    const texts = [
      call({ prompt: "hi" }, "m", null),
      call({ prompt: "hi" }, "n", null),
      call({ prompt: "hi" }, "m", 9),
      call({ prompt: "hi", temperature: 1 }, "m", null),
      call({ prompt: "hi", system: "s" }, "m", null),
      call({ prompt: "hi", params: { seed: 1 } }, "m", null),
      call({ prompt: "hi", context }, "m", null),
    ];
    expect(new Set(texts).size).toBe(texts.length);
    expect(call({ prompt: "hi", context: { ...context, object: "elsewhere" } }, "m", null)).toBe(texts.at(-1));
  });

  it("of a batch file are requests to their endpoint", () => {
    const json = '{"model":"up/m","messages":[]}';
    expect(call({ raw: { endpoint: "chat", json } }, "m", null)).toBe(chat('{"messages":[],"model":"other/m"}'));
  });
});

describe("requests to /v1", () => {
  it("are equal whatever the order of names and the upstream's name, and differ by what they say", () => {
    const same = [chat('{"model":"a/m","seed":1,"stream":true}'), chat('{"stream":true,"seed":1,"model":"b/m"}')];
    expect(new Set(same).size).toBe(1);
    expect(chat('{"seed":2,"stream":true}')).not.toBe(same[0]);
    expect(chat('{"seed":1,"stream":true}', { headers: { "openai-beta": "x" } })).not.toBe(same[0]);
    expect(chat('{"seed":1,"stream":true}', { query: "?beta=1" })).not.toBe(same[0]);
  });

  it("differ by digits that JavaScript cannot hold", () => {
    expect(chat('{"seed":9007199254740993}')).not.toBe(chat('{"seed":9007199254740992}'));
    expect(chat('{"x":0.12345678901234567}')).not.toBe(chat('{"x":0.123456789012345671}'));
    expect(chat('{"x":1234567890123456}')).toContain("1234567890123456");
  });
});

describe("a kept request", () => {
  it("is whole up to the bound, and its beginning and its key beyond", () => {
    const request = callRequest({ prompt: "p" }, "m", null);
    const text = (chars: number): string => "x".repeat(chars);
    expect(keptRequest(request, text(CASSETTE_REQUEST_CHARS_MAX), "k")).toEqual({ request });
    const cut = keptRequest(request, text(CASSETTE_REQUEST_CHARS_MAX + 1), "k");
    expect(cut).toEqual({ cut: { model: "m", text: text(CASSETTE_CUT_CHARS), key: "k" } });
  });
});
