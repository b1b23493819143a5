import { describe, expect, it } from "vitest";
import {
  ownSecrets,
  redacted,
  shownMessage,
  withoutOwnSecrets,
  withoutSecretsIn,
} from "../../../src/providers/redact.ts";
import { FORMS, quotesKey } from "../../support/quoted-key.ts";
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

describe("a secret with JSON escapes", () => {
  it.each(Object.entries(FORMS))("is blanked in a text: %s", (_, form) => {
    expect(withoutOwnSecrets(`{"a":"\\n${form(KEY)}"}`, upstream)).toBe('{"a":"\\n[redacted]"}');
    expect(quotesKey(redacted(form(KEY), upstream), KEY)).toBe(false);
    expect(quotesKey(shownMessage(form(KEY), upstream), KEY)).toBe(false);
  });

  it("is blanked with a slash or a quote that is escaped alone", () => {
    const odd = makeUpstream({ apiKey: 'a/b+c."d"' });
    expect(withoutOwnSecrets(`${JSON.stringify('a/b+c."d"')} a\\/b+c.\\"d\\"`, odd)).toBe('"[redacted]" [redacted]');
    expect(withoutOwnSecrets("a/b+cxdd", odd)).toBe("a/b+cxdd");
  });
});

describe("a configured header with a scheme", () => {
  it("is a secret without it", () => {
    const scheme = makeUpstream({ apiKey: null, headers: { "x-auth": `Token ${KEY}` } });
    expect(withoutOwnSecrets(`quotes ${KEY}, Token ${KEY}`, scheme)).toBe("quotes [redacted], Token [redacted]");
  });
});

describe("an outcome", () => {
  it("has no key in any of its fields", () => {
    const usage = { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
    const success = { kind: "success", text: "", model: `m-${KEY}`, finishReason: KEY } as const;
    expect(withoutSecretsIn({ ...success, usage: { ...usage, serviceTier: KEY } }, upstream)).toEqual({
      ...success,
      model: "m-[redacted]",
      finishReason: "[redacted]",
      usage: { ...usage, serviceTier: "[redacted]" },
    });
    const reason = { reason: "upstream_error", upstream: "acme", status: 500, message: KEY, retryable: true } as const;
    const failure = { kind: "failure", class: "transient", answered: true, retryAfterMs: null } as const;
    expect(withoutSecretsIn({ ...failure, reason: { ...reason, upstreamCode: KEY } }, upstream)).toEqual({
      ...failure,
      reason: { ...reason, message: "[redacted]", upstreamCode: "[redacted]" },
    });
  });
});
