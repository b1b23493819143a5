/** What a tool gets: the input of a task with its texts replaced, the types that its parameters want, and what they refuse. */
import { expect, it } from "vitest";
import { parseToolTask } from "../../../src/contract/graph/tool-task.ts";
import { SETTINGS_DEFAULT } from "../../../src/contract/call-options.ts";
import { toolOfModel } from "../../../src/call.ts";
import { TOOL_CALL_BYTES_MAX } from "../../../src/limits.ts";
import { inputOf, inputRefusal, parametersOf, typedInput } from "../../../src/tools/input.ts";
import type { Tool } from "../../../src/tools/tool.ts";

function bodyOf(input: unknown) {
  const parsed = parseToolTask({ tool: "search", input }, SETTINGS_DEFAULT, (field) => field);
  if (!parsed.ok) throw new Error("was refused");
  return parsed.value;
}

it.each([[{}], ["text"], [7], [null], [["a", { b: "c", d: [1, "e"] }]], [{ a: { b: ["", "x"] }, n: null, t: true }]])(
  "makes the input %j again from the texts of its message",
  (input) => expect(inputOf(bodyOf(input).body)).toEqual(input),
);

it("puts replaced texts where their references stood, and nowhere else", () => {
  const { body, facts } = bodyOf({ a: "$1", list: ["x", "{{b.output}}"], n: 3 });
  const [message] = body.messages ?? [];
  const parts = ["search", "one", "x", '"two", {{c}}'].map((text) => ({ type: "text", text }));
  expect(inputOf({ ...body, messages: [{ ...Object(message), content: parts }] })).toEqual({
    a: "one",
    list: ["x", '"two", {{c}}'],
    n: 3,
  });
  expect(toolOfModel(facts.model)).toBe("search");
  expect(toolOfModel("search")).toBeNull();
});

const schema = {
  type: "object",
  properties: { n: { type: "number" }, i: { type: "integer" }, b: { type: "boolean" }, s: {} },
};

it("gives numbers and truth values where the parameters want them, and leaves every other text", () => {
  const input = { n: " 1.5e3 ", i: "7", b: "false", s: "7", other: "7" };
  expect(typedInput(input, schema)).toEqual({ n: 1500, i: 7, b: false, s: "7", other: "7" });
  expect(typedInput({ n: "seven", b: "yes", i: "" }, schema)).toEqual({ n: "seven", b: "yes", i: "" });
  expect(typedInput(["7"], schema)).toEqual(["7"]);
  expect(typedInput(input, null)).toBe(input);
});

const tool = (parameters?: object): Tool => ({
  name: "search",
  url: "https://tools.example/search",
  description: null,
  idempotent: false,
  timeoutMs: 1_000,
  ...(parameters !== undefined && { parametersJson: JSON.stringify(parameters) }),
});

it("refuses an input that does not fit, or that is too large, and says where", () => {
  expect(inputRefusal(tool(), { n: "x" }, "{}")).toBeNull();
  expect(inputRefusal(tool(schema), { n: 1 }, "{}")).toBeNull();
  expect(inputRefusal(tool(schema), { n: "x" }, "{}")).toMatchObject({
    reason: "invalid_input",
    message: expect.stringContaining('the input of the tool "search" does not fit its parameters: $.n'),
  });
  expect(inputRefusal(tool(), {}, "x".repeat(TOOL_CALL_BYTES_MAX))).toBeNull();
  expect(inputRefusal(tool(), {}, "x".repeat(TOOL_CALL_BYTES_MAX + 1))).toMatchObject({ reason: "payload_too_large" });
  // A run of an earlier version has tools without parameters.
  expect(parametersOf(tool())).toBeNull();
});
