/** Bodies of all run objects of an isolate are in one account: whoever has changed least recently gives back first. */
import { expect, it } from "vitest";
import { InstanceMemory, type Member } from "../../../../../durable-objects/run/store/instance-memory.ts";
import { INSTANCE_BODIES_CHARS_MAX, INSTANCE_LOADS_CHARS_MAX, LOAD_MS_MAX } from "../../../../../src/limits.ts";

const QUARTER = INSTANCE_BODIES_CHARS_MAX / 4;

function cacheIn(memory: InstanceMemory, name: string, gaveBack: string[], left = 0): Member {
  return memory.member(() => {
    gaveBack.push(name);
    return left;
  });
}

it("takes back from those that have changed least recently, as much as is needed and no more", () => {
  const memory = new InstanceMemory();
  const gaveBack: string[] = [];
  const [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map((name) => cacheIn(memory, name, gaveBack));
  for (const member of [a, b, c, d]) member?.keeps(QUARTER);
  a?.keeps(QUARTER);
  e?.keeps(QUARTER);
  expect(gaveBack).toEqual(["b"]);
  expect(memory.chars).toBe(INSTANCE_BODIES_CHARS_MAX);
  e?.keeps(3 * QUARTER);
  expect(gaveBack).toEqual(["b", "c", "d"]);
  expect(memory.chars).toBe(INSTANCE_BODIES_CHARS_MAX);
});

it("counts what a member cannot give back, and calls on the next", () => {
  const memory = new InstanceMemory();
  const gaveBack: string[] = [];
  cacheIn(memory, "a", gaveBack, QUARTER).keeps(2 * QUARTER);
  cacheIn(memory, "b", gaveBack).keeps(QUARTER);
  cacheIn(memory, "c", gaveBack).keeps(3 * QUARTER);
  expect(gaveBack).toEqual(["a", "b"]);
  expect(memory.chars).toBe(4 * QUARTER);
});

it("holds for any number of members that never give back by themselves", () => {
  const memory = new InstanceMemory();
  for (let object = 0; object < 1_000; object += 1) memory.member(() => 0).keeps(QUARTER);
  expect(memory.chars).toBe(INSTANCE_BODIES_CHARS_MAX);
});

it("has room for so many characters that are read at once; a read that never ends counts for a minute", () => {
  const memory = new InstanceMemory();
  const first = memory.load(INSTANCE_LOADS_CHARS_MAX, 0);
  expect(first).not.toBeNull();
  expect(memory.load(1, 0)).toBeNull();
  first?.release();
  expect(memory.load(INSTANCE_LOADS_CHARS_MAX, 0)).not.toBeNull();
  expect(memory.load(1, LOAD_MS_MAX - 1)).toBeNull();
  expect(memory.load(1, LOAD_MS_MAX)).not.toBeNull();
});
