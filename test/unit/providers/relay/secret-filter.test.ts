/** The key of an upstream in bytes that come in pieces: found in every form, at every split; all other bytes stay. */
import { describe, expect, it } from "vitest";
import { joined } from "../../../../src/providers/read-body.ts";
import { SecretFilter } from "../../../../src/providers/relay/secret-filter.ts";
import { seeded } from "../../../support/engine.ts";
import { FORMS, quotesKey } from "../../../support/quoted-key.ts";

const KEYS = ["sk-test-0123456789abcdef", "aaaaaaab", "a/b+c==d", "sk-sk-sk-test", "xx"];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function filtered(text: string, key: string, cuts: readonly number[]): string {
  const bytes = encoder.encode(text);
  const filter = new SecretFilter(key);
  const bounds = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  const out: Uint8Array[] = [];
  for (let at = 1; at < bounds.length; at++) out.push(...filter.feed([bytes.slice(bounds[at - 1], bounds[at])]));
  return decoder.decode(joined([...out, ...filter.end()]));
}

describe("a secret in pieces", () => {
  it.each(Object.entries(FORMS))("is blanked as %s at every split in two, and nothing else is", (_, form) => {
    for (const own of KEYS) {
      const quoted = form(own);
      const text = `{"a":"sk-é\\n\\u00e9","b":"${quoted}","c":"\\"${quoted}!"}\n`;
      for (let cut = 0; cut <= encoder.encode(text).length; cut++) {
        expect(filtered(text, own, [cut])).toBe('{"a":"sk-é\\n\\u00e9","b":"[redacted]","c":"\\"[redacted]!"}\n');
      }
    }
  });

  it("is blanked if each byte comes alone", () => {
    for (const form of Object.values(FORMS)) {
      const [key = ""] = KEYS;
      const text = `"${form(key)}"`;
      expect(
        filtered(
          text,
          key,
          Array.from(text, (_, at) => at),
        ),
      ).toBe('"[redacted]"');
    }
  });

  it("with quotes and slashes is blanked as JSON writes it", () => {
    const key = 'a/b+c=="d"';
    expect(filtered(`${JSON.stringify({ key })} a\\/b+c==\\"d\\" ${key}`, key, [7, 9])).toBe(
      '{"key":"[redacted]"} [redacted] [redacted]',
    );
  });

  it("leaves 3,000 random texts without it as they came, whatever their splits", () => {
    const random = seeded(5);
    const letters = ["s", "k", "-", "te", "\\", "\\u00", "\\u006b", "6b", '"', "\n", "é", "sk-test-012345678", "aaaa"];
    for (let round = 0; round < 3_000; round++) {
      const text = Array.from({ length: 30 }, () => letters[Math.floor(random() * letters.length)]).join("");
      const key = KEYS[round % 2] ?? "";
      if (quotesKey(text, key)) continue;
      const length = encoder.encode(text).length;
      const cuts = Array.from({ length: 4 }, () => Math.floor(random() * length));
      const bytes = filtered(text, key, cuts);
      expect(bytes).toBe(text);
    }
  });

  it("withholds nothing behind a line end, so that no event of a stream waits", () => {
    const filter = new SecretFilter("sk-test-0123456789abcdef");
    const event = encoder.encode('data: {"t":"sk-te"}\n\n');
    expect(filter.feed([event])).toEqual([event]);
    expect(filter.end()).toEqual([]);
  });

  it("is searched for in linear time, whatever the bytes are", { tags: ["slow"] }, () => {
    // Quadratic work would take minutes.
    for (const unit of ["\\", "\\u", "s", "\\u0073", "\\\\\\\\\\\\\\\\u0073"]) {
      filtered(unit.repeat(300_000), "sk-test-0123456789abcdef", []);
    }
  });
});
