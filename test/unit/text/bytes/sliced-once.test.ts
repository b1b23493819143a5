/** Work that many requests wait for, which one of them may leave at any time. */
import { describe, expect, it } from "vitest";
import { SlicedOnce } from "../../../../src/text/bytes/sliced-once.ts";
import { atOnce } from "../../../../src/text/bytes/slices.ts";

/** Work of some slices, each of which is noted. */
function counted(slices: number) {
  const done: number[] = [];
  const once = new SlicedOnce(function* () {
    for (let slice = 1; slice < slices; slice += 1) {
      done.push(slice);
      yield;
    }
    done.push(slices);
    return { slices };
  });
  return { once, done };
}

describe("sliced work that is done once", () => {
  it("is done by all who wait for it, in turns: each slice once", () => {
    const { once, done } = counted(5);
    const [first, second] = [once.result(), once.result()];
    expect([first.next().done, second.next().done, first.next().done, second.next().done]).toEqual(
      Array(4).fill(false),
    );
    expect(done).toEqual([1, 2, 3, 4]);
    const ended = first.next();
    expect(ended).toEqual({ done: true, value: { slices: 5 } });
    // The other has nothing left to do, and no pause.
    expect(second.next().value).toBe(ended.value);
    expect(atOnce(once.result())).toBe(ended.value);
    expect(done).toEqual([1, 2, 3, 4, 5]);
  });

  it("goes on where one that was dropped in the middle has left it", () => {
    const { once, done } = counted(3);
    once.result().next();
    expect(atOnce(once.result())).toEqual({ slices: 3 });
    expect(done).toEqual([1, 2, 3]);
  });

  it("begins anew after a slice that throws", () => {
    let tries = 0;
    const once = new SlicedOnce(function* () {
      tries += 1;
      yield;
      if (tries === 1) throw new Error("the first fails");
      return tries;
    });
    expect(() => atOnce(once.result())).toThrow("the first fails");
    expect(atOnce(once.result())).toBe(2);
  });
});
