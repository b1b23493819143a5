/** The field `tools` of `POST /runs`, and the body of `POST /tool_call`. */
import { describe, expect, it } from "vitest";
import { parseRun } from "../../../src/contract/runs.ts";
import { parseToolCall } from "../../../src/contract/tools.ts";
import {
  TOOL_DESCRIPTION_CHARS_MAX,
  TOOL_TIMEOUT_MS_MAX,
  TOOL_URL_CHARS_MAX,
  TOOLS_PER_RUN_MAX,
} from "../../../src/limits.ts";

const tool = (fields: Record<string, unknown> = {}) => ({ name: "search", url: "https://a.example.com/", ...fields });

function refusedField(parsed: ReturnType<typeof parseRun | typeof parseToolCall>): string | null {
  if (parsed.ok || parsed.reason.reason !== "invalid_request") throw new Error("it was not refused");
  expect(parsed.reason.message).toContain(parsed.reason.param ?? "the body");
  return parsed.reason.param;
}

describe("tools that a run is opened with", () => {
  it("need a name and an address", () => {
    expect(parseRun({ tools: [tool()] })).toEqual({ ok: true, value: { tools: [tool()] } });
    expect(parseRun({ tools: [] }).ok).toBe(true);
  });

  it("are accepted at their bounds", () => {
    const url = "u".repeat(TOOL_URL_CHARS_MAX);
    const description = "d".repeat(TOOL_DESCRIPTION_CHARS_MAX);
    const widest = { name: "n".repeat(64), url, description, idempotent: true, timeout_ms: TOOL_TIMEOUT_MS_MAX };
    expect(parseRun({ tools: [widest] }).ok).toBe(true);
    const many = Array.from({ length: TOOLS_PER_RUN_MAX }, (_, at) => tool({ name: `t${at}` }));
    expect(parseRun({ tools: many }).ok).toBe(true);
    expect(refusedField(parseRun({ tools: [...many, tool()] }))).toBe("tools");
  });

  it.each([
    ["tools", tool()],
    ["tools", null],
    ["tools[0]", ["search"]],
    ["tools[0].name", [tool({ name: "" })]],
    ["tools[0].name", [tool({ name: "n".repeat(65) })]],
    ["tools[0].name", [tool({ name: "a b" })]],
    ["tools[0].name", [tool({ name: "a\n" })]],
    ["tools[0].name", [tool({ name: "naïve" })]],
    ["tools[0].name", [{ url: "https://a.example.com/" }]],
    ["tools[0].url", [{ name: "search" }]],
    ["tools[0].url", [tool({ url: "" })]],
    ["tools[0].url", [tool({ url: "u".repeat(TOOL_URL_CHARS_MAX + 1) })]],
    ["tools[0].description", [tool({ description: "d".repeat(TOOL_DESCRIPTION_CHARS_MAX + 1) })]],
    ["tools[0].description", [tool({ description: "\ud800" })]],
    ["tools[0].idempotent", [tool({ idempotent: "yes" })]],
    ["tools[0].timeout_ms", [tool({ timeout_ms: 0 })]],
    ["tools[0].timeout_ms", [tool({ timeout_ms: TOOL_TIMEOUT_MS_MAX + 1 })]],
    ["tools[0].timeout_ms", [tool({ timeout_ms: 1.5 })]],
    ["tools[0].headers", [tool({ headers: {} })]],
    ["tools[1].name", [tool(), tool({ url: "https://b.example.com/" })]],
  ])("are refused with the name of the field: %s", (field, tools) => {
    expect(refusedField(parseRun({ tools }))).toBe(field);
  });
});

describe("a tool call", () => {
  it("is a name and any JSON value, {} if it is missing; other fields are ignored", () => {
    expect(parseToolCall({ tool_name: "search", input: { q: 1 } })).toEqual({
      ok: true,
      value: { name: "search", input: { q: 1 } },
    });
    expect(parseToolCall({ tool_name: "search" })).toEqual({ ok: true, value: { name: "search", input: {} } });
    for (const input of [null, 0, "", [], [1]]) {
      expect(parseToolCall({ tool_name: "search", input, id: 3 })).toEqual({
        ok: true,
        value: { name: "search", input },
      });
    }
  });

  it.each([{}, { input: {} }, { tool_name: "" }, { tool_name: null }])(
    "without a name is refused with that reason: %j",
    (body) => {
      const parsed = parseToolCall(body);
      expect(parsed).toEqual({
        ok: false,
        reason: { reason: "invalid_request", message: "missing tool_name", param: "tool_name" },
      });
    },
  );

  it.each([1, ["search"], { a: 1 }, "a b", "n".repeat(65), "search\n", "../search", "\u0000"])(
    "is refused where its name cannot be a tool's: %j",
    (name) => expect(refusedField(parseToolCall({ tool_name: name }))).toBe("tool_name"),
  );

  it.each([null, 3, "search", [{ tool_name: "search" }]])("is an object: %j is refused", (body) => {
    expect(refusedField(parseToolCall(body))).toBeNull();
  });

  it("may be nested 64 levels deep", () => {
    const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(parseToolCall({ tool_name: "search", input: nested(64) }).ok).toBe(true);
    expect(refusedField(parseToolCall({ tool_name: "search", input: nested(65) }))).toBe("input");
  });
});
