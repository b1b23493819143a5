import { describe, expect, it } from "vitest";
import type { CallBody } from "../../../../src/call.ts";
import { markedPrefix } from "../../../../src/contract/contexts/marked-prefix.ts";
import { PREFIX_BYTES_MIN } from "../../../../src/limits.ts";

const LONG = "x".repeat(PREFIX_BYTES_MIN);
const CACHE_CONTROL = { cache_control: { type: "ephemeral" } };
const text = (value: string, mark: object = {}): object => ({ type: "text", text: value, ...mark });
const user = (...content: object[]): CallBody => ({ messages: [{ role: "user", content }] });
const keyOf = (body: CallBody): string | undefined => markedPrefix(body)?.key;

describe("the beginning that a client has marked", () => {
  const marked = user(text(LONG, CACHE_CONTROL), text("a"));

  it("ends at the mark: calls that differ behind it share it", () => {
    expect(keyOf(marked)).toMatch(/^own_[0-9a-f]{16}$/);
    expect(keyOf(user(text(LONG, CACHE_CONTROL), text("b")))).toBe(keyOf(marked));
    expect(markedPrefix(marked)).toMatchObject({ own: true });
  });

  it("differs with every part before the mark", () => {
    const others: CallBody[] = [
      user(text(`${LONG}y`, CACHE_CONTROL), text("a")),
      user(text("a"), text(LONG, CACHE_CONTROL)),
      { ...marked, system: "Be brief." },
      { ...marked, schema: { type: "object" } },
      { ...marked, params: { tools: [{ name: "t" }] } },
      { messages: [{ role: "system", content: [text(LONG, CACHE_CONTROL)] }] },
      { messages: [{ role: "user", content: "x" }, ...(marked.messages ?? [])] },
    ];
    const keys = [marked, ...others].map((body) => keyOf(body));
    expect(new Set(keys).size).toBe(keys.length);
    expect(keyOf({ ...marked, params: { top_p: 0.5 } })).toBe(keyOf(marked));
  });

  it("ends at the first mark that is as far as providers cache", () => {
    const both = user(text("short", CACHE_CONTROL), text(LONG, CACHE_CONTROL), text("a", CACHE_CONTROL));
    const other = user(text("short", CACHE_CONTROL), text(LONG, CACHE_CONTROL), text("b", CACHE_CONTROL));
    expect(keyOf(both)).toBe(keyOf(other));
    expect(keyOf(user(text("short", CACHE_CONTROL), text(LONG)))).toBeUndefined();
  });

  it("may be marked by OpenAI's field; without a mark there is none", () => {
    expect(keyOf(user(text(LONG, { prompt_cache_breakpoint: { mode: "explicit" } })))).toBeDefined();
    for (const body of [user(text(LONG)), user(text(LONG, { cache_control: null })), { prompt: LONG }])
      expect(keyOf(body)).toBeUndefined();
  });
});
