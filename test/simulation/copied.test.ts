/** Copies of what travels between isolates. */
import { describe, expect, it } from "vitest";
import { copied } from "./copied.ts";

describe("a copy", () => {
  it.each([
    ["plain data", { list: [1, "two", null, undefined, { three: 3n }], none: undefined }],
    ["bytes, times and maps", { bytes: Uint8Array.of(1, 2), at: new Date(0), map: new Map([["a", [1]]]) }],
    ["an error", [new TypeError("no")]],
  ])("of %s is what structuredClone makes of it", (_, value) => {
    expect(copied(value)).toEqual(structuredClone(value));
  });

  it("shares nothing with its original", () => {
    const original = { inner: { list: [1] }, bytes: Uint8Array.of(1) };
    const copy = copied(original);
    original.inner.list.push(2);
    original.bytes[0] = 9;
    expect(copy).toEqual({ inner: { list: [1] }, bytes: Uint8Array.of(1) });
  });

  it.each([[() => 1], [{ call: () => 1 }], [[Symbol("x")]]])("of code or a symbol is refused", (value) => {
    expect(() => copied(value)).toThrow("could not be cloned");
  });
});
