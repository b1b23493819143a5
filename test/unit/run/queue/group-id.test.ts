import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupIdOf, groupSalt, groupSeqOfId, windowIdOf } from "../../../../src/run/queue/group-id.ts";

const FORM = /^pg-\d{13}-[0-9a-z]{6}$/;
const SUFFIXES = 36 ** 6;

const nowMs = fc.integer({ min: 0, max: 9_999_999_999_999 });
const seq = fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 0, max: SUFFIXES / 2 - 1 }));
const salt = fc.oneof(fc.integer({ min: 0, max: SUFFIXES / 2 - 1 }), fc.nat({ max: 2 ** 32 - 1 }));
/** A random number, uniform in [0, 1). */
const random = fc.double({ min: 0, max: 1 - Number.EPSILON / 2, noNaN: true });

describe("a stored group's id", () => {
  it("has 13 digits of time and six of base 36, which decode to its number only", () => {
    fc.assert(
      fc.property(nowMs, seq, salt, (atMs, number, runSalt) => {
        const id = groupIdOf(atMs, number, runSalt);
        expect(id).toMatch(FORM);
        expect(Number(id.slice(3, 16))).toBe(atMs);
        expect(groupSeqOfId(id, runSalt)).toBe(number);
      }),
    );
  });

  it("differs from that of any other group of its run, even of the same millisecond", () => {
    fc.assert(
      fc.property(seq, seq, salt, (one, other, runSalt) => {
        expect(groupIdOf(7, one, runSalt) === groupIdOf(7, other, runSalt)).toBe(one === other);
      }),
    );
  });

  it("decodes in another run to a number that is not in use there", () => {
    const salts = Array.from({ length: 40 }, (_, each) => groupSalt(`run_${String(each).padStart(26, "0")}`));
    expect(new Set(salts).size).toBe(salts.length);
    for (const own of salts) {
      const led = salts.filter((each) => each !== own).map((other) => groupSeqOfId(groupIdOf(7, 1, own), other));
      expect(Math.min(...led.map((number) => number ?? Number.NaN))).toBeGreaterThan(10_000);
    }
  });
});

describe("the id of a group of single calls", () => {
  it("has the same form for any random number", () => {
    fc.assert(
      fc.property(nowMs, random, (atMs, drawn) => {
        expect(windowIdOf(atMs, drawn)).toMatch(FORM);
      }),
    );
  });

  it("is never that of a stored group, whatever the salt", () => {
    fc.assert(
      fc.property(nowMs, random, salt, (atMs, drawn, runSalt) => {
        expect(groupSeqOfId(windowIdOf(atMs, drawn), runSalt)).toBeNull();
      }),
    );
  });

  it("uses the upper half of all suffixes, including both ends", () => {
    expect(windowIdOf(0, 0)).toBe("pg-0000000000000-i00000");
    expect(windowIdOf(0, 1 - Number.EPSILON / 2)).toBe("pg-0000000000000-zzzzzz");
    expect(groupIdOf(0, SUFFIXES / 2 - 1, 0)).toBe("pg-0000000000000-hzzzzz");
    expect(groupSeqOfId("pg-0000000000000-hzzzzz", 0)).toBe(SUFFIXES / 2 - 1);
    expect(groupSeqOfId("pg-0000000000000-i00000", 0)).toBeNull();
  });
});

describe("a text that is not a group's id", () => {
  it.each([
    "",
    "pg-",
    "pg-123-000001",
    "pg-1763712000000-00001",
    "pg-1763712000000-0000001",
    "pg-1763712000000-00000A",
    "PG-1763712000000-000001",
    "pg-1763712000000-000001\n",
    " pg-1763712000000-000001",
    "pg-1763712000000-000001/results",
  ])("decodes to no number: %j", (text) => {
    expect(groupSeqOfId(text, 0)).toBeNull();
  });
});

describe("a run's salt", () => {
  it("is the same each time, and within the range of suffixes", () => {
    for (const id of ["", "run_1", "run_ü", "x".repeat(1_000)]) {
      expect(groupSalt(id)).toBe(groupSalt(id));
      expect(groupSalt(id)).toBeGreaterThanOrEqual(0);
      expect(groupSalt(id)).toBeLessThan(SUFFIXES / 2);
    }
  });
});
