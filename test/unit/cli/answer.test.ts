import { describe, expect, it } from "vitest";
import { asCsvLine, asJsonLine, asTextLine, readAnswer } from "../../../cli/batch/answer.ts";

const lineOf = (value: unknown) => Buffer.from(JSON.stringify(value));
const answeredWith = (body: unknown, status = 200) =>
  readAnswer(lineOf({ custom_id: "a", response: { status_code: status, body }, error: null }));
const chat = (content: string | null, more = {}) =>
  answeredWith({ choices: [{ message: { content, ...more }, finish_reason: "stop" }] });

describe("readAnswer", () => {
  it.each([
    [{ choices: [{ message: { content: "hi" }, finish_reason: "length" }] }, { text: "hi", finish_reason: "length" }],
    [{ choices: [{ text: "hi" }] }, { text: "hi", finish_reason: null }],
    [{ choices: [{ text: "a" }, { text: "b" }] }, { text: "a", texts: ["a", "b"], finish_reason: null }],
    [{ choices: [{ message: { content: null, refusal: "no" } }] }, { text: "no", finish_reason: null }],
    [
      { choices: [{ message: { content: null, tool_calls: [{ id: "c" }] } }] },
      { text: "", tool_calls: [{ id: "c" }], finish_reason: null },
    ],
    [
      {
        output: [
          { type: "reasoning" },
          {
            content: [
              { type: "output_text", text: "a" },
              { type: "output_text", text: "b" },
            ],
          },
        ],
      },
      { text: "ab" },
    ],
    [{ data: [{ embedding: [1, 2] }] }, { embedding: [1, 2] }],
    [{ data: [{ embedding: [1] }, { embedding: [2] }] }, { embeddings: [[1], [2]] }],
    [{ results: [] }, { body: { results: [] } }],
  ])("reads %j", (body, fields) => {
    expect(answeredWith(body)).toEqual({ error: null, fields });
  });

  it.each([
    [
      { response: null, error: { code: "batch_expired", message: "late" } },
      { code: "batch_expired", message: "late" },
    ],
    [
      { response: { status_code: 429, body: { error: { type: "rate_limit_error", message: "slow", code: null } } } },
      { code: "rate_limit_error", message: "slow", status: 429 },
    ],
    [
      { response: { status_code: 200, body: { error: { code: "x", message: "late fault" } } } },
      { code: "x", message: "late fault" },
    ],
    [{ response: { status_code: 500, body: "oops" } }, { code: null, message: "oops", status: 500 }],
    [
      { response: null, error: null },
      { code: null, message: "The server gave no reason." },
    ],
  ])("takes %j for a failure", (line, error) => {
    expect(readAnswer(lineOf(line))).toEqual({ error });
  });

  it("reports that there is no answer", () => {
    expect(readAnswer(null)).toMatchObject({ error: { code: "missing" } });
  });
});

describe("an answer's line", () => {
  it("is one line of JSON for readers that end lines at U+2028 too", () => {
    const text = asJsonLine("a", chat("x\n\u2028\u0085y"));
    expect(text).toBe('{"custom_id":"a","text":"x\\n\\u2028\\u0085y","finish_reason":"stop"}\n');
    expect(JSON.parse(text)).toMatchObject({ text: "x\n\u2028\u0085y" });
  });

  it("is a record of a .csv", () => {
    expect(asCsvLine("a,b", chat('say "hi"\n'))).toBe('"a,b","say ""hi""\n",\r\n');
    expect(asCsvLine("a", readAnswer(null))).toBe("a,,missing: The batch has no answer for this line.\r\n");
    expect(asCsvLine("a", answeredWith({ data: [{ embedding: [1, 2] }] }))).toBe('a,"[1,2]",\r\n');
  });

  it("is one line of text, whatever the answer holds", () => {
    expect(asTextLine(chat("one\r\ntwo \\n \u2028\t."))).toBe("one\\r\\ntwo \\\\n \\u2028\t.\n");
    expect(asTextLine(answeredWith({ error: { message: "no\nway", code: "c" } }, 400))).toBe("[error] c: no\\nway\n");
  });
});
