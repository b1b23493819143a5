import { describe, expect, it } from "vitest";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN, SCAN_SLICE_BYTES } from "../../../../../src/limits.ts";
import type { Endpoint } from "../../../../../src/call.ts";
import { markedBeginning } from "../../../../../src/providers/formats/request/marked-beginning.ts";
import { atOnce } from "../../../../../src/text/bytes/slices.ts";
import { scanObject } from "../../../../../src/text/json/scan.ts";

const LONG = "x".repeat(PREFIX_BYTES_MIN);
const MARK = { cache_control: { type: "ephemeral" } };
const text = (value: string, mark: object = {}): object => ({ type: "text", text: value, ...mark });
const user = (...content: object[]): object => ({ role: "user", content });

function reading(endpoint: Endpoint, body: unknown) {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const scan = scanObject(bytes);
  if (!scan.ok) throw new Error(scan.problem);
  return markedBeginning(endpoint, bytes, scan.object);
}

const prefixOf = (endpoint: Endpoint, body: unknown) => atOnce(reading(endpoint, body));
const keyOf = (body: unknown, endpoint: Endpoint = "messages"): string | undefined => prefixOf(endpoint, body)?.key;

describe("the beginning of a relayed request that its client has marked", () => {
  const marked = { model: "m", messages: [user(text(LONG, MARK), text("a"))] };

  it.each<Endpoint>(["messages", "chat"])("ends at the mark: requests to %s that differ behind it share it", (of) => {
    const prefix = prefixOf(of, marked);
    expect(prefix).toMatchObject({ own: true, key: expect.stringMatching(/^own_[0-9a-f]{16}$/) });
    expect(prefix?.tokens).toBeGreaterThanOrEqual(Math.floor(PREFIX_BYTES_MIN / PREFIX_BYTES_PER_TOKEN));
    expect(keyOf({ ...marked, messages: [user(text(LONG, MARK), text("b"))] }, of)).toBe(prefix?.key);
    expect(keyOf({ ...marked, max_tokens: 5, temperature: 1, stream: true }, of)).toBe(prefix?.key);
  });

  it("may end in the tools or in the system message, which come first", () => {
    const tools = [{ name: "a", description: LONG, ...MARK }, { name: "b" }];
    expect(keyOf({ tools, messages: [user(text("a"))] })).toBeDefined();
    expect(keyOf({ tools, messages: [user(text("b"))], system: "s" })).toBe(
      keyOf({ tools, messages: [user(text("a"))] }),
    );
    const system = [text(LONG, MARK)];
    expect(keyOf({ system, messages: [user(text("a"))] })).toBe(keyOf({ messages: [user(text("b"))], system }));
    expect(keyOf({ system, messages: [] }, "chat")).toBeUndefined();
  });

  it("differs with every part before the mark", () => {
    const others = [
      { messages: [user(text(`${LONG}y`, MARK), text("a"))] },
      { messages: [user(text("a"), text(LONG, MARK))] },
      { ...marked, system: "Be brief." },
      { ...marked, system: [text("Be brief.")] },
      { ...marked, tools: [{ name: "t" }] },
      { messages: [{ role: "system", content: [text(LONG, MARK)] }] },
      { messages: [user(text("a")), ...marked.messages] },
      { messages: [{ role: "user", content: "x" }, ...marked.messages] },
      { system: "x", messages: marked.messages },
    ];
    const keys = [marked, ...others].map((body) => keyOf(body));
    expect(keys).not.toContain(undefined);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("ends at the first mark that is as far as providers cache", () => {
    const both = { messages: [user(text("short", MARK), text(LONG, MARK), text("a", MARK))] };
    const other = { messages: [user(text("short", MARK), text(LONG, MARK), text("b", MARK))] };
    expect(keyOf(both)).toBe(keyOf(other));
    expect(keyOf({ messages: [user(text("short", MARK), text(LONG))] })).toBeUndefined();
  });

  it("is none without a mark, at endpoints that have none, and in bodies of another form", () => {
    const breakpoint = { messages: [user(text(LONG, { prompt_cache_breakpoint: { mode: "explicit" } }))] };
    expect(keyOf(breakpoint, "chat")).toBeDefined();
    expect(prefixOf("responses", marked)).toBeNull();
    const strange = [
      { messages: [user(text(LONG))] },
      { messages: [user(text(LONG, { cache_control: null }))] },
      { messages: LONG },
      { messages: [LONG, null, 5, [text(LONG, MARK)]] },
      { messages: [{ role: "user", content: LONG }] },
      { tools: LONG, system: null, messages: [{ content: null }] },
      {},
    ];
    for (const body of strange) expect(keyOf(body), JSON.stringify(body).slice(0, 80)).toBeUndefined();
  });

  it("is read in slices", () => {
    const work = reading("messages", { messages: [user(text("x".repeat(3 * SCAN_SLICE_BYTES), MARK))] });
    let pauses = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) pauses += 1;
    expect([pauses, step.value?.own]).toEqual([3, true]);
  });
});
