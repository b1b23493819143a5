/** An answer's JSON, and the sentence about what is wrong with it. */
import { describe, expect, it } from "vitest";
import {
  SCHEMA_ANSWER_DEPTH_MAX,
  SCHEMA_REPAIR_CHARS_MAX,
  SCHEMA_VIOLATION_CHARS_MAX,
} from "../../../../src/limits.ts";
import { jsonOfAnswer, violationOf } from "../../../../src/text/schema/answer.ts";
import { repairBytes, repairedBody } from "../../../../src/text/schema/repair.ts";

const FENCE = "```";
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

describe("the JSON of an answer", () => {
  it.each<[string, unknown]>([
    ['{"a":1}', { a: 1 }],
    [" \n[1]\n", [1]],
    ["null", null],
    [`${FENCE}json\n{"a":1}\n${FENCE}`, { a: 1 }],
    [`\n${FENCE}\n1\n${FENCE}\n`, 1],
    [`Here: {"a":1}`, undefined],
    [`${FENCE}json\n1\n${FENCE} and\n${FENCE}\n2\n${FENCE}`, undefined],
    [FENCE, undefined],
    [`${FENCE}\n${FENCE}`, undefined],
    ["", undefined],
    ['{"a":1', undefined],
    [nested(SCHEMA_ANSWER_DEPTH_MAX), JSON.parse(nested(SCHEMA_ANSWER_DEPTH_MAX))],
    [nested(SCHEMA_ANSWER_DEPTH_MAX + 1), undefined],
    [nested(100_000), undefined],
  ])("%# is all of the text, or of the code block that is all of it", (text, value) => {
    expect(jsonOfAnswer(text)).toEqual(value);
  });
});

describe("a violation", () => {
  const schema = { type: "object", properties: { "a b": { type: "array", items: { type: "null" } } } };

  it("names the place and what is wrong there", () => {
    expect(violationOf('{"a b":[null]}', schema, false)).toBeNull();
    expect(violationOf('{"a b":[null,1]}', schema, false)).toBe("$.a b[1]: expected null, received number");
    expect(violationOf("no", schema, false)).toMatch(/^the answer is not JSON/);
    expect(violationOf('{"a b', schema, true)).toContain("completion cap");
  });

  it("is short, whatever the answer's names are", () => {
    const text = JSON.stringify({ ["x".repeat(100_000)]: 1 });
    const violation = violationOf(text, { additionalProperties: false }, false);
    expect(violation?.length).toBe(SCHEMA_VIOLATION_CHARS_MAX);
  });
});

describe("the request for another answer", () => {
  const schema = { type: "null" };
  const repair = { text: " no ", violation: "the answer is not JSON" };

  it("has the answer and what is wrong after the first request, whose other fields stay", () => {
    const body = { prompt: "p", system: "s", temperature: 0, params: { top_p: 1 }, schema };
    const { messages, ...rest } = repairedBody(body, repair);
    const { prompt: _, ...others } = body;
    expect(rest).toEqual(others);
    expect(messages).toMatchObject([
      { role: "user", content: "p" },
      { role: "assistant", content: "no" },
      { role: "user", content: expect.stringContaining("the answer is not JSON") as unknown },
    ]);
    const conversation = [{ role: "user", content: [{ type: "text", text: "p" }] }];
    expect(repairedBody({ messages: conversation, schema }, repair).messages?.slice(0, 1)).toEqual(conversation);
  });

  it("has no message without text: providers refuse it", () => {
    const { messages } = repairedBody({ prompt: "p", schema }, { ...repair, text: " " });
    expect(messages).toMatchObject([{ role: "user" }, { role: "user" }]);
  });

  it.each([
    ["no", 0],
    ["x".repeat(SCHEMA_REPAIR_CHARS_MAX + 1), 0],
    ["é".repeat(SCHEMA_REPAIR_CHARS_MAX), 0],
    // Three bytes that a normalising tokenizer reads as 33.
    ["\ufdfa".repeat(100), 3_000],
  ])("has at most the bytes that are reserved for it (%#)", (text, growth) => {
    const { messages = [] } = repairedBody({ messages: [], schema }, { ...repair, text });
    const bytes = messages.reduce<number>((sum, message) => {
      const { content } = message as { content: string };
      return sum + new TextEncoder().encode(content).length;
    }, 0);
    expect(repairBytes(schema, { ...repair, text })).toBe(bytes + growth);
    expect(bytes).toBeLessThan(3 * SCHEMA_REPAIR_CHARS_MAX);
  });
});
