import { describe, expect, it } from "vitest";
import { ownSecrets, redacted, shownMessage, withoutOwnSecrets } from "../../../src/upstream/redact.ts";
import { KEY, makeUpstream } from "./make.ts";

const upstream = makeUpstream();

describe("an upstream's own secrets", () => {
  it("are its key and its configured headers, but for short words and documented ones", () => {
    const headers = {
      "x-org": "org-1234",
      "x-mode": "seven77",
      "anthropic-version": "2023-06-01",
      "user-agent": "longer than that",
    };
    expect(ownSecrets(makeUpstream({ headers }))).toEqual([KEY, "org-1234"]);
    expect(ownSecrets(makeUpstream({ apiKey: null }))).toEqual([]);
    expect(ownSecrets(makeUpstream({ apiKey: "" }))).toEqual([]);
  });

  it("are blanked wherever they stand, and all else stays", () => {
    expect(withoutOwnSecrets(`a${KEY}b ${KEY}`, upstream)).toBe("a[redacted]b [redacted]");
    expect(withoutOwnSecrets("sk-other-0123456789", upstream)).toBe("sk-other-0123456789");
    expect(withoutOwnSecrets("a", makeUpstream({ apiKey: "" }))).toBe("a");
  });
});

describe("an error body that is passed on", () => {
  it.each([
    [
      `{"error":{"message":"Incorrect API key provided: ${KEY}."}}`,
      '{"error":{"message":"Incorrect API key provided: [redacted]."}}',
    ],
    ['{"message":"sk-proj-****************abcd is wrong"}', '{"message":"[redacted] is wrong"}'],
    ['{"message":"Bearer abc.def.ghi"}', '{"message":"[redacted]"}'],
    ['{"message":"Bearer abc\\"x"}', '{"message":"[redacted]\\"x"}'],
    ['{"message":"AIzaSyA1234567"}', '{"message":"[redacted]"}'],
    ["xai-abcdefgh", "[redacted]"],
  ])("has every key blanked and is still JSON: %s", (text, clean) => {
    expect(redacted(text, upstream)).toBe(clean);
    if (text.startsWith("{")) expect(() => JSON.parse(clean) as unknown).not.toThrow();
  });

  it("keeps fields, types and codes that look like keys, and every other byte", () => {
    const text =
      '{ "error": {"type":"key_not_found","code":"api_key_invalid","param":"hf_model","n":1.0e+2,\t"x":"sk-1"}}\r\n';
    expect(redacted(text, upstream)).toBe(text);
  });
});

describe("a message that is shown", () => {
  it("is one line without credentials of any known shape", () => {
    expect(shownMessage(` wrong\n key  hf_abcdef123456 `, upstream)).toBe("wrong key [redacted]");
  });

  it("cannot lead to half a key by being cut", () => {
    for (let at = 0; at < 600; at += 7)
      expect(shownMessage(`${"x ".repeat(at)}${KEY}`, upstream)).not.toContain("0123");
  });
});
