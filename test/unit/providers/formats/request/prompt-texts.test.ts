/** The texts of a call that a search reads. */
import { describe, expect, it } from "vitest";
import { promptTexts } from "../../../../../src/providers/formats/request/prompt-texts.ts";
import type { CallBody } from "../../../../../src/call.ts";

const PIXEL = "data:image/png;base64,AAAA";

describe("the texts of a call", () => {
  it.each<[string, CallBody, string[]]>([
    ["a prompt and its system message", { system: "s", prompt: "p" }, ["s", "p"]],
    [
      "messages, their parts, and no roles or images",
      {
        messages: [
          { role: "user", content: "one" },
          {
            role: "user",
            content: [
              { type: "text", text: "two" },
              { type: "image_url", image_url: { url: PIXEL } },
            ],
          },
        ],
      },
      ["one", "two"],
    ],
    [
      "calls of tools and their results",
      {
        messages: [
          { role: "assistant", tool_calls: [{ id: "c", function: { name: "f", arguments: '{"q":"three"}' } }] },
          { role: "assistant", content: [{ type: "tool_use", name: "f", input: { city: "four" } }] },
          { role: "user", content: [{ type: "tool_result", content: [{ type: "text", text: "five" }] }] },
        ],
      },
      ['{"q":"three"}', "four", "five"],
    ],
    [
      "a whole request",
      { raw: { endpoint: "responses", json: JSON.stringify({ model: "m", instructions: "six", input: ["seven"] }) } },
      ["six", "seven"],
    ],
    ["the input of a tool", { tool: { name: "t", input: { a: ["eight"] } } }, ["eight"]],
  ])("are those of %s", (_, body, texts) => {
    expect([...promptTexts(body)]).toEqual(texts);
  });
});
