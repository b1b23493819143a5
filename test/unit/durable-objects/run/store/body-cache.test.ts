/** Bodies in R2 as the run object reads them: ahead of dispatch, within a bound, again after a failure. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Hold } from "../../../../../src/text/bytes/held-bytes.ts";
import { BodyCache, type BodyGroup } from "../../../../../durable-objects/run/store/body-cache.ts";
import { InstanceMemory } from "../../../../../durable-objects/run/store/instance-memory.ts";
import {
  BODY_CACHE_CHARS_MAX,
  BODY_LOADS_MAX,
  BODY_OBJECT_CHARS_MAX,
  BODY_OBJECTS_AHEAD,
  INSTANCE_BODIES_CHARS_MAX,
} from "../../../../../src/limits.ts";

/** An R2 whose reads end when the test says so. */
function slowBucket(
  textOf: (name: string) => string | null | Error = (name) => `${name} a\n${name} b`,
  memory = new InstanceMemory(),
) {
  const reads: { name: string; end: () => Promise<void> }[] = [];
  let arrivals = 0;
  const pauses: (() => void)[] = [];
  const cache = new BodyCache({
    load: (openKey, object) => {
      const name = `${openKey}/${object}`;
      const { promise, resolve, reject } = Promise.withResolvers<string | null>();
      const end = async (): Promise<void> => {
        const text = textOf(name);
        if (text instanceof Error) reject(text);
        else resolve(text);
        await new Promise((done) => setImmediate(done));
      };
      reads.push({ name, end });
      return promise;
    },
    arrived: () => (arrivals += 1),
    wait: () => new Promise((resolve) => pauses.push(resolve)),
    now: () => 0,
    memory,
  });
  const names = (): string[] => reads.map(({ name }) => name);
  const endAll = async (): Promise<void> => {
    for (const { end } of reads.splice(0)) await end();
  };
  return { cache, reads, names, endAll, pauses, arrivals: () => arrivals };
}

const group = (seq: number, objects = 100): BodyGroup => ({ seq, openKey: `key${seq}`, objects });

describe("bodies that dispatch comes to", () => {
  it("are read with those after them, and given by line once they have arrived", async () => {
    const { cache, names, endAll, arrivals } = slowBucket();
    expect(cache.stateOf(group(1), 0)).toBe("awaited");
    expect(names()).toEqual(Array.from({ length: 1 + BODY_OBJECTS_AHEAD }, (_, object) => `key1/${object}`));
    expect(() => cache.line(1, { object: 0, line: 0 })).toThrow("not in memory");
    await endAll();
    expect(arrivals()).toBe(1 + BODY_OBJECTS_AHEAD);
    expect(cache.stateOf(group(1), 0)).toBe("here");
    expect(cache.line(1, { object: 0, line: 1 })).toBe("key1/0 b");
    expect(names()).toEqual([]);
    expect(cache.stateOf(group(1), 1)).toBe("here");
    expect(names()).toEqual([`key1/${1 + BODY_OBJECTS_AHEAD}`]);
  });

  it("are not read beyond the group's last, nor twice while they are on their way", () => {
    const { cache, names } = slowBucket();
    for (let look = 0; look < 3; look++) expect(cache.stateOf(group(1, 2), 1)).toBe("awaited");
    expect(names()).toEqual(["key1/1"]);
  });

  it("are read a few at a time, however many groups wait; who was refused asks again when one has arrived", async () => {
    const { cache, names, endAll } = slowBucket();
    for (let seq = 1; seq <= 50; seq++) expect(cache.stateOf(group(seq, 1), 0)).toBe("awaited");
    expect(names()).toEqual(Array.from({ length: BODY_LOADS_MAX }, (_, index) => `key${index + 1}/0`));
    await endAll();
    expect(cache.stateOf(group(50, 1), 0)).toBe("awaited");
    expect(names()).toEqual(["key50/0"]);
  });

  it("are dropped when others need the room, the least recently used first, and read again", async () => {
    const text = "x".repeat(BODY_OBJECT_CHARS_MAX);
    const { cache, names, endAll } = slowBucket(() => text);
    const fitting = Math.floor(BODY_CACHE_CHARS_MAX / BODY_OBJECT_CHARS_MAX);
    for (let seq = 1; seq <= fitting; seq++) {
      cache.stateOf(group(seq, 1), 0);
      await endAll();
    }
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
    cache.stateOf(group(fitting + 1, 1), 0);
    await endAll();
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
    expect(cache.stateOf(group(2, 1), 0)).toBe("awaited");
    expect(names()).toEqual(["key2/0"]);
  });

  it("are kept if they alone are larger than the bound", async () => {
    const { cache, endAll } = slowBucket(() => "x".repeat(BODY_CACHE_CHARS_MAX + 1));
    cache.stateOf(group(1, 1), 0);
    await endAll();
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
  });

  it("are not read while other objects of the isolate have all the room for reads, and then without being called", async () => {
    const memory = new InstanceMemory();
    const others: Hold[] = [];
    for (let hold = memory.load(BODY_OBJECT_CHARS_MAX, 0); hold !== null; hold = memory.load(BODY_OBJECT_CHARS_MAX, 0))
      others.push(hold);
    const { cache, names, endAll, pauses, arrivals } = slowBucket(undefined, memory);
    expect(cache.stateOf(group(1, 1), 0)).toBe("awaited");
    expect(cache.stateOf(group(1, 1), 0)).toBe("awaited");
    expect([names(), pauses.length]).toEqual([[], 1]);
    others[0]?.release();
    pauses.forEach((resume) => resume());
    await expect.poll(arrivals, { interval: 1 }).toBe(1);
    expect(cache.stateOf(group(1, 1), 0)).toBe("awaited");
    await endAll();
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
  });

  it("are dropped for those of other objects in the isolate, and read again", async () => {
    const memory = new InstanceMemory();
    const { cache, endAll } = slowBucket(undefined, memory);
    cache.stateOf(group(1, 1), 0);
    await endAll();
    memory.member(() => 0).keeps(INSTANCE_BODIES_CHARS_MAX);
    expect(cache.stateOf(group(1, 1), 0)).toBe("awaited");
    await endAll();
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
  });

  it("are lost if R2 has no such object", async () => {
    const { cache, names, endAll } = slowBucket((name) => (name === "key1/0" ? null : "text"));
    cache.stateOf(group(1, 2), 0);
    await endAll();
    expect([cache.stateOf(group(1, 2), 0), cache.stateOf(group(1, 2), 1)]).toEqual(["lost", "here"]);
    expect(names()).toEqual([]);
  });

  it("are read again, after a pause, if R2 fails", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => log.mockRestore());
    let isDown = true;
    const { cache, names, endAll, pauses, arrivals } = slowBucket(() => (isDown ? new Error("R2 is down") : "text"));
    cache.stateOf(group(1, 1), 0);
    await endAll();
    expect([cache.stateOf(group(1, 1), 0), names(), arrivals()]).toEqual(["awaited", [], 0]);
    isDown = false;
    pauses.forEach((resume) => resume());
    await expect.poll(arrivals, { interval: 1 }).toBe(1);
    expect(cache.stateOf(group(1, 1), 0)).toBe("awaited");
    await endAll();
    expect(cache.stateOf(group(1, 1), 0)).toBe("here");
    expect(log).toHaveBeenCalledOnce();
  });

  it("are forgotten with their group", async () => {
    const { cache, endAll } = slowBucket((name) => (name === "key1/1" ? null : "text"));
    cache.stateOf(group(1, 2), 0);
    cache.stateOf(group(2, 1), 0);
    await endAll();
    cache.forget(1);
    expect([cache.stateOf(group(1, 2), 0), cache.stateOf(group(1, 2), 1), cache.stateOf(group(2, 1), 0)]).toEqual([
      "awaited",
      "awaited",
      "here",
    ]);
  });
});
