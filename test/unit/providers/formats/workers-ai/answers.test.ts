/** Failures and answers of the binding of Workers AI, by the forms in which Cloudflare writes them. */
import { expect, it } from "vitest";
import { completionOf, errorOf } from "../../../../../src/providers/formats/workers-ai/answers.ts";

const stated = { id: "id-1", created: 5, model: "@cf/m", cap: null };

it("states both forms of a failure with their number, and an exhausted capacity as an overload", () => {
  const inner = (internalCode: number): string => JSON.stringify({ internalCode, name: "AiError", description: "why" });
  const listed = (code: number): string => JSON.stringify({ success: false, errors: [{ code, message: "why" }] });
  for (const form of [inner, listed]) {
    const stands = (code: number): string =>
      JSON.stringify({ error: { message: `${code}: why`, type: "workers_ai", code: String(code) } });
    expect(errorOf(429, form(3036))).toEqual({ status: 429, text: stands(3036) });
    expect(errorOf(429, form(3040))).toEqual({ status: 503, text: stands(3040) });
  }
});

it("leaves failures of other forms as they are", () => {
  for (const text of ["<html>", "", '"text"', '{"error":{"message":"no"}}', '{"internalCode":1}']) {
    expect(errorOf(502, text)).toEqual({ status: 502, text });
  }
});

it("leaves an answer as it is that is a chat completion, or none of the binding's", () => {
  for (const answer of [{ choices: [], response: "a" }, { result: 1 }, null, [1], "text"]) {
    expect(completionOf(answer, stated)).toBe(answer);
  }
});

it("states no usage that the binding has not stated", () => {
  expect(completionOf({ response: "a" }, stated)).toEqual({
    ...{ id: "id-1", object: "chat.completion", created: 5, model: "@cf/m" },
    choices: [{ index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" }],
  });
});
