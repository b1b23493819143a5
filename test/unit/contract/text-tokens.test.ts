import { SETTINGS_DEFAULT, parseSettings } from "../../../src/contract/call-options.ts";
import { describe, expect, test } from "vitest";
import { parseCall } from "../../../src/contract/call.ts";
import { PROMPT_BYTES_MAX, TEXT_LOOK_BYTES_MIN } from "../../../src/limits.ts";
import { readRequest } from "../../../src/providers/formats/request/read.ts";

const ENGLISH = "The light of the sun is made of rays that are not the same, and each of them has its own way. ".repeat(
  60,
);
const place = (field: string) => field;

function factsOf(input: Parameters<typeof parseCall>[0], options: Parameters<typeof parseSettings>[0] = {}) {
  const settings = parseSettings(options, SETTINGS_DEFAULT, place);
  if (!settings.ok) throw new Error(JSON.stringify(settings.reason));
  const call = parseCall(input, settings.value, place);
  if (!call.ok) throw new Error(JSON.stringify(call.reason));
  return call.value.facts;
}

describe("the look at the text of a call", () => {
  test("counts an English prompt with less than a third of a token per byte", () => {
    const { promptBytes, textTokensMax } = factsOf({ prompt: ENGLISH });
    expect(textTokensMax).toBeGreaterThan(promptBytes * 0.2);
    expect(textTokensMax).toBeLessThan(promptBytes * 0.33);
  });

  test("adds the system text and the params to the prompt", () => {
    const alone = factsOf({ prompt: ENGLISH }).textTokensMax ?? 0;
    const withSystem = factsOf({ prompt: ENGLISH }, { system: ENGLISH, params: { user: "0123456789" } });
    expect(withSystem.textTokensMax).toBe(2 * alone + '{"user":"0123456789"}'.length);
  });

  test("counts a short text as many tokens as it has bytes, beside a long one", () => {
    const alone = factsOf({ prompt: ENGLISH }).textTokensMax ?? 0;
    expect(factsOf({ prompt: ENGLISH }, { system: "Be brief." }).textTokensMax).toBe(alone + "Be brief.".length);
  });

  test("reads messages as JSON, whose own signs count a byte each", () => {
    const { promptBytes, textTokensMax } = factsOf({ messages: [{ role: "user", content: ENGLISH }] });
    const { textTokensMax: plain = 0 } = factsOf({ prompt: ENGLISH });
    expect(textTokensMax).toBeGreaterThan(plain);
    expect(textTokensMax).toBeLessThan(plain + 60);
    expect(promptBytes).toBeGreaterThan(textTokensMax ?? Infinity);
  });

  test.each(["short", "0".repeat(10_000)])("leaves no figure where it gains nothing", (prompt) => {
    expect(factsOf({ prompt }).textTokensMax).toBeUndefined();
  });

  test("begins at its smallest length", () => {
    const text = "the light ".repeat(500);
    expect(factsOf({ prompt: text.slice(0, TEXT_LOOK_BYTES_MIN - 1) }).textTokensMax).toBeUndefined();
    expect(factsOf({ prompt: text.slice(0, TEXT_LOOK_BYTES_MIN) }).textTokensMax).toBeLessThan(TEXT_LOOK_BYTES_MIN);
  });

  test("is not taken of a request with media, whose bytes are no text", () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(400)}` } };
    const content = [{ type: "text", text: ENGLISH }, image];
    expect(factsOf({ messages: [{ role: "user", content }] }).textTokensMax).toBeUndefined();
  });

  test("is taken of a request of /v1 as of a batch", () => {
    const messages = [{ role: "user", content: `${ENGLISH}\n"quoted" \u00e9` }];
    const read = readRequest("chat", Buffer.from(JSON.stringify({ model: "up/m", messages })));
    if (!read.ok) throw new Error(JSON.stringify(read.reason));
    const { textTokensMax = 0 } = factsOf({ messages });
    expect(read.value.textTokensMax).toBeGreaterThanOrEqual(textTokensMax);
    expect(read.value.textTokensMax).toBeLessThan(textTokensMax + 30);
  });
});

describe("the bytes of a call's prompt", () => {
  // 3 bytes as sent, 33 after NFKC.
  const dense = "\ufdfa".repeat(100);

  test("count what a tokenizer that normalises makes of them, in a prompt, a system text, params and messages", () => {
    expect(factsOf({ prompt: dense }).promptBytes).toBe(3_300);
    expect(factsOf({ prompt: "a" }, { system: dense }).promptBytes).toBe(3_301);
    const user = factsOf({ prompt: "a" }, { params: { user: dense } });
    expect(user.promptBytes).toBe(3_301 + '{"user":""}'.length);
    const messages = (content: string) => factsOf({ messages: [{ role: "user", content }] }).promptBytes;
    expect(messages(dense) - messages("")).toBe(3_300);
  });

  test("so do the tokens by the look at a text", () => {
    const { textTokensMax = 0 } = factsOf({ prompt: ENGLISH + dense });
    expect(textTokensMax - (factsOf({ prompt: ENGLISH }).textTokensMax ?? 0)).toBeGreaterThanOrEqual(3_300);
  });

  test.each([
    ["chat", (input: string) => `{"messages":[{"role":"user","content":"${input}"}]}`],
    ["messages", (input: string) => `{"max_tokens":9,"system":"${input}","messages":[{"role":"user","content":"a"}]}`],
    ["responses", (input: string) => `{"input":"${input}"}`],
    ["completions", (input: string) => `{"prompt":"${input}"}`],
    ["embeddings", (input: string) => `{"input":["${input}"]}`],
  ] as const)("count so in a body of %s, as UTF-8 and as escapes", (endpoint, bodyOf) => {
    const bytesOf = (input: string): number => {
      const read = readRequest(endpoint, Buffer.from(bodyOf(input)));
      if (!read.ok) throw new Error(JSON.stringify(read.reason));
      return read.value.promptBytes;
    };
    expect(bytesOf(dense) - bytesOf("")).toBe(3_300);
    expect(bytesOf(String.raw`\uFDFA`.repeat(100)) - bytesOf("")).toBe(3_300);
  });

  test("do not count against the bound of a stored call", () => {
    const prompt = "\ufdfa".repeat(Math.floor(PROMPT_BYTES_MAX / 3) - 100);
    expect(factsOf({ prompt }).promptBytes).toBeGreaterThan(PROMPT_BYTES_MAX);
  });
});
