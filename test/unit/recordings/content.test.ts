import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallBody } from "../../../src/call.ts";
import { callContent, recordKey, relayedContent } from "../../../src/recordings/content.ts";

const uncapped = { maxTokens: null };

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, part]) => [name, shuffled(part)]),
  );
}

const json = fc.jsonValue({ maxDepth: 3 });
const body: fc.Arbitrary<CallBody> = fc.record(
  {
    messages: fc.array(fc.record({ role: fc.constantFrom("user", "assistant"), content: json })),
    system: fc.string(),
    temperature: fc.constantFrom(0, 0.5, 1),
    params: fc.dictionary(fc.string(), json),
    schema: fc.dictionary(fc.string(), json),
  },
  { requiredKeys: ["messages"] },
);

/** JSON has no negative zero, so two values are equal if their JSON is, whatever the order of names. */
function isEqual(a: unknown, b: unknown): boolean {
  try {
    expect(JSON.parse(JSON.stringify(a))).toEqual(JSON.parse(JSON.stringify(b)));
    return true;
  } catch {
    return false;
  }
}

describe("callContent", () => {
  it("is the same for a text wherever it is stored, and different for another part of it", () => {
    const place = "prompt" as const;
    const context = { id: "ctx_1", from: 0, to: 10, place };
    const content = (more: object) =>
      callContent({ prompt: "a", context: { ...context, ...more } }, { maxTokens: null });
    expect(content({ object: "1" })).toBe(content({}));
    expect(content({ to: 9 })).not.toBe(content({}));
    expect(content({ id: "ctx_2" })).not.toBe(content({}));
    expect(content({})).not.toBe(callContent({ prompt: "a" }, { maxTokens: null }));
  });

  it("is the same for requests that differ in the order of names only", () => {
    fc.assert(
      fc.property(body, (call) => {
        const other = shuffled(call) as CallBody;
        expect(callContent(other, uncapped)).toBe(callContent(call, uncapped));
      }),
    );
  });

  it("differs for different requests", () => {
    fc.assert(
      fc.property(body, body, (a, b) => {
        expect(callContent(a, uncapped) === callContent(b, uncapped)).toBe(isEqual(a, b));
      }),
    );
  });

  it("keeps texts apart that are equal once they are joined", () => {
    const a = callContent({ system: "ab", prompt: "c" }, uncapped);
    const b = callContent({ system: "a", prompt: "bc" }, uncapped);
    const c = callContent({ prompt: '","system":"' }, uncapped);
    expect(new Set([a, b, c, callContent({ prompt: "abc" }, uncapped)]).size).toBe(4);
  });

  it("takes a prompt for one user message", () => {
    const messages = [{ role: "user", content: "hello" }];
    expect(callContent({ prompt: "hello" }, uncapped)).toBe(callContent({ messages }, uncapped));
  });

  it("differs with the cap that the client requests", () => {
    expect(callContent({ prompt: "x" }, { maxTokens: 5 })).not.toBe(callContent({ prompt: "x" }, uncapped));
  });

  it("does not depend on options that are named but undefined", () => {
    const named: CallBody = JSON.parse('{"prompt":"x"}');
    Object.assign(named, { system: undefined });
    expect(callContent(named, uncapped)).toBe(callContent({ prompt: "x" }, uncapped));
  });
});

describe("relayedContent", () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const head = { endpoint: "chat", query: "", headers: [] } as const;
  const text = (...of: Parameters<typeof relayedContent>): string => new TextDecoder().decode(relayedContent(...of));

  it("keeps apart what differs in a digit that a parsed number would lose", () => {
    const a = text(head, bytes('{"seed":9007199254740993}'));
    expect(a).not.toBe(text(head, bytes('{"seed":9007199254740992}')));
  });

  it("keeps apart what moves between head and body", () => {
    const a = text({ ...head, query: "?beta=true" }, bytes("{}"));
    const b = text(head, bytes("?beta=true\n{}"));
    const c = text({ ...head, headers: [["anthropic-beta", "x"]] }, bytes("{}"));
    expect(new Set([a, b, c, text(head, bytes("{}"))]).size).toBe(4);
  });
});

describe("recordKey", () => {
  it("differs with the route", () => {
    expect(recordKey("sim/echo", "hash")).not.toBe(recordKey("sim/fail", "hash"));
  });
});
