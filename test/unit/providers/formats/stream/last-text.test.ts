import { describe, expect, it } from "vitest";
import { LastText } from "../../../../../src/providers/formats/stream/last-text.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("the text of the last bytes", () => {
  it("is decoded anew for other bytes, also for another view of the same memory", () => {
    const texts = new LastText();
    const bytes = bytesOf("one two");
    expect([texts.of(bytes), texts.of(bytes), texts.of(bytes.subarray(4)), texts.of(bytes)]).toEqual([
      "one two",
      "one two",
      "two",
      "one two",
    ]);
  });

  it("keeps a byte order mark, so that indexes hold, and replaces what is no UTF-8", () => {
    const texts = new LastText();
    expect(texts.of(bytesOf("\uFEFFa"))).toBe("\uFEFFa");
    expect(texts.of(new Uint8Array([0x61, 0xff]))).toBe("a\uFFFD");
    expect(texts.of(new Uint8Array(0))).toBe("");
  });
});
