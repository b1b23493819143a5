import { describe, expect, it } from "vitest";
import { HeldBytes } from "../../../../src/text/bytes/held-bytes.ts";

const MB = 1024 * 1024;
const rules = { bytesMax: 64 * MB, largeBytesMin: MB, ageMsMax: 60_000 };

describe("the bytes that requests hold", () => {
  it("refuse a large request exactly from where it would pass the bound", () => {
    const bodies = new HeldBytes(rules);
    expect(bodies.hold().take(32 * MB, 0)).toBe(true);
    expect(bodies.hold().take(32 * MB + 1, 0)).toBe(false);
    expect(bodies.hold().take(32 * MB, 0)).toBe(true);
    expect(bodies.hold().take(MB, 0)).toBe(false);
    expect(bodies.bytes).toBe(64 * MB);
  });

  it("never refuse a small request, but count it", () => {
    const bodies = new HeldBytes(rules);
    expect(bodies.hold().take(64 * MB, 0)).toBe(true);
    const small = bodies.hold();
    expect(small.take(MB - 1, 0)).toBe(true);
    expect(bodies.bytes).toBe(65 * MB - 1);
    // It grows to a large one.
    expect(small.take(MB, 0)).toBe(false);
    expect(bodies.bytes).toBe(65 * MB - 1);
  });

  it("are free again once released, and only once", () => {
    const bodies = new HeldBytes(rules);
    const first = bodies.hold();
    const second = bodies.hold();
    first.take(40 * MB, 0);
    expect(second.take(40 * MB, 0)).toBe(false);
    first.release();
    first.release();
    expect(bodies.bytes).toBe(0);
    expect(second.take(40 * MB, 0)).toBe(true);
    expect(bodies.bytes).toBe(40 * MB);
  });

  it("grow with a request of unknown length: its total counts, not the sum of its steps", () => {
    const bodies = new HeldBytes(rules);
    const body = bodies.hold();
    for (const total of [1, MB, 2 * MB, 64 * MB]) expect(body.take(total, 0)).toBe(true);
    expect(bodies.bytes).toBe(64 * MB);
    expect(body.take(64 * MB + 1, 0)).toBe(false);
    body.release();
    expect(bodies.bytes).toBe(0);
  });

  it("of a request that was dropped without a release count until they are too old", () => {
    const bodies = new HeldBytes(rules);
    bodies.hold().take(64 * MB, 1_000);
    expect(bodies.hold().take(MB, 60_999)).toBe(false);
    expect(bodies.hold().take(MB, 61_000)).toBe(true);
    expect(bodies.bytes).toBe(MB);
  });

  it("of an old request that is released after all are not returned twice", () => {
    const bodies = new HeldBytes(rules);
    const old = bodies.hold();
    old.take(64 * MB, 0);
    bodies.hold().take(10 * MB, 60_000);
    old.release();
    expect(bodies.bytes).toBe(10 * MB);
  });
});
