import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Tape } from "../../../src/recordings/tape.ts";

const ROOMY = { answersMax: 100_000, epochsMax: 8, usesMax: 200_000 };
const own = (id: string): { id: string; at: string } => ({ id, at: id });

describe("Tape", () => {
  it("gives each epoch every answer of a key once, in their order", () => {
    const tape = new Tape(ROOMY);
    for (const id of ["a", "b", "c"]) tape.add("key", own(id));
    const taken = (epoch: string): (string | undefined)[] => [1, 2, 3, 4].map(() => tape.take(epoch, "key")?.id);
    expect(taken("one")).toEqual(["a", "b", "c", undefined]);
    expect(taken("two")).toEqual(["a", "b", "c", undefined]);
  });

  it("gives no epoch an answer that it has made", () => {
    const tape = new Tape(ROOMY);
    tape.add("key", own("a"));
    tape.use("one", "a");
    expect(tape.take("one", "key")).toBeNull();
    expect(tape.take("two", "key")?.id).toBe("a");
  });

  it("knows an answer once, so that a copy is no further sample", () => {
    const tape = new Tape(ROOMY);
    expect(tape.add("key", own("a"))).toBe(true);
    expect(tape.add("key", { id: "a", at: "elsewhere" })).toBe(false);
    expect(tape.size).toBe(1);
  });

  it("records up to its bound of answers and no more", () => {
    const tape = new Tape({ ...ROOMY, answersMax: 2 });
    expect([tape.add("x", own("1")), tape.add("y", own("2")), tape.add("z", own("3"))]).toEqual([true, true, false]);
    expect(tape.take("one", "z")).toBeNull();
  });

  it("forgets the epoch that was used least recently, and no other", () => {
    const tape = new Tape({ ...ROOMY, epochsMax: 2 });
    tape.add("key", own("a"));
    for (const epoch of ["one", "two", "one", "three"]) tape.use(epoch, "a");
    expect([tape.hasHad("one", "a"), tape.hasHad("two", "a"), tape.hasHad("three", "a")]).toEqual([true, false, true]);
  });

  it("stops replaying in an epoch that alone reaches the bound of uses", () => {
    const tape = new Tape({ ...ROOMY, usesMax: 2 });
    for (const id of ["a", "b", "c"]) tape.add(id, own(id));
    expect(["a", "b", "c"].map((key) => tape.take("one", key)?.id)).toEqual(["a", "b", undefined]);
    expect(tape.take("two", "c")?.id).toBe("c");
  });

  it("never gives an answer twice in an epoch, whatever the order of calls and answers", () => {
    const step = fc.record({
      epoch: fc.constantFrom("", "e", "f"),
      key: fc.constantFrom("x", "y"),
      adds: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const tape = new Tape(ROOMY);
        const had = new Map<string, Set<string>>();
        const made = new Map<string, string[]>();
        for (const [at, { epoch, key, adds }] of steps.entries()) {
          const seen = had.get(epoch) ?? new Set<string>();
          had.set(epoch, seen);
          const answers = made.get(key) ?? [];
          made.set(key, answers);
          if (adds) {
            const id = `${key}${at}`;
            tape.add(key, own(id));
            tape.use(epoch, id);
            answers.push(id);
            seen.add(id);
            continue;
          }
          const expected = answers.find((id) => !seen.has(id)) ?? null;
          expect(tape.take(epoch, key)?.id ?? null).toBe(expected);
          if (expected !== null) seen.add(expected);
        }
      }),
    );
  });
});
