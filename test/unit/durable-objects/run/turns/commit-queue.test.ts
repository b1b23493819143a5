import { describe, expect, it } from "vitest";
import { CommitQueue } from "../../../../../durable-objects/run/turns/commit-queue.ts";

/** A queue whose turns write down what happens, and whose `soon` is the test's to run. */
function makeQueue({ crowded = false, finish = () => {} }: { crowded?: boolean; finish?: () => void } = {}) {
  const log: string[] = [];
  const later: (() => void)[] = [];
  /** Stores that are under way: the test ends them. */
  const stores: (() => void)[] = [];
  const control = { crowded, finish, nowMs: 7 };
  const queue = new CommitQueue({
    now: () => control.nowMs,
    finish: (nowMs) => {
      log.push(`finish ${nowMs}`);
      control.finish();
    },
    broken: (error) => log.push(`broken ${String(error)}`),
    crowded: () => control.crowded,
    soon: (callback) => later.push(callback),
    stored: () => new Promise((resolve) => stores.push(resolve)),
  });
  const submit = (name: string): Promise<string> =>
    queue.submit<string>((reply, nowMs) => {
      log.push(`${name} ${nowMs}`);
      reply(name);
    });
  const told = (name: string, promise: Promise<string>): void =>
    void promise.then(
      (value) => log.push(`told ${value}`),
      (error: unknown) => log.push(`${name} rejected: ${String(error)}`),
    );
  return { queue, log, later, stores, control, submit, told };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a turn", () => {
  it("runs at once for a single caller, and replies when it has finished", async () => {
    const { log, submit, told } = makeQueue();
    told("a", submit("a"));
    expect(log).toEqual(["a 7", "finish 7"]);
    await settled();
    expect(log).toEqual(["a 7", "finish 7", "told a"]);
  });

  it("runs every operation that arrived while it was waiting, in order, at one time, and finishes once", async () => {
    const { log, later, submit, told } = makeQueue({ crowded: true });
    for (const name of ["a", "b", "c"]) told(name, submit(name));
    expect([log, later.length]).toEqual([[], 1]);
    later.shift()?.();
    await settled();
    expect(log).toEqual(["a 7", "b 7", "c 7", "finish 7", "told a", "told b", "told c"]);
  });

  it("that is scheduled includes operations that arrive when the object is not crowded any more", () => {
    const { log, later, control, submit } = makeQueue({ crowded: true });
    void submit("a");
    control.crowded = false;
    void submit("b");
    expect(log).toEqual([]);
    later.shift()?.();
    expect(log).toEqual(["a 7", "b 7", "finish 7"]);
  });

  it("of a crowded object is followed by one for all that arrived until its replies left", async () => {
    const { log, later, stores, submit } = makeQueue({ crowded: true });
    void submit("a");
    later.shift()?.();
    void submit("b");
    void submit("c");
    await settled();
    expect([log, later.length]).toEqual([["a 7", "finish 7"], 0]);
    stores.shift()?.();
    await settled();
    expect(log).toEqual(["a 7", "finish 7", "b 7", "c 7", "finish 7"]);
    // Its own replies are waited for, too.
    expect(stores).toHaveLength(1);
  });

  it("of a crowded object is followed by none if nothing arrived, and the next waits for nothing", async () => {
    const { log, later, stores, submit } = makeQueue({ crowded: true });
    void submit("a");
    later.shift()?.();
    stores.shift()?.();
    await settled();
    expect(log).toEqual(["a 7", "finish 7"]);
    void submit("b");
    later.shift()?.();
    expect(log).toEqual(["a 7", "finish 7", "b 7", "finish 7"]);
  });

  it("that is requested while another is stored runs after it, even without an operation", async () => {
    const { queue, log, later, stores, submit } = makeQueue({ crowded: true });
    void submit("a");
    later.shift()?.();
    queue.poke();
    expect(log).toEqual(["a 7", "finish 7"]);
    stores.shift()?.();
    await settled();
    expect(log).toEqual(["a 7", "finish 7", "finish 7"]);
  });

  it("of an idle object gathers what arrives while it is stored, too: that comes from another caller", async () => {
    const { log, later, stores, submit } = makeQueue();
    void submit("a");
    void submit("b");
    void submit("c");
    expect(log).toEqual(["a 7", "finish 7"]);
    stores.shift()?.();
    await settled();
    expect([log, later]).toEqual([["a 7", "finish 7", "b 7", "c 7", "finish 7"], []]);
  });

  it("of a lone caller, which waits for its reply, never waits", async () => {
    const { log, stores, submit } = makeQueue();
    for (const name of ["a", "b"]) {
      void submit(name);
      expect(log.at(-2)).toBe(`${name} 7`);
      stores.shift()?.();
      await settled();
    }
  });

  it("needs no operation: it may run because time has passed", async () => {
    const { queue, log, later, stores, control } = makeQueue();
    queue.poke();
    expect(log).toEqual(["finish 7"]);
    stores.shift()?.();
    await settled();
    control.crowded = true;
    queue.poke();
    queue.poke();
    expect([log.length, later.length]).toEqual([1, 1]);
  });

  it("may leave a caller waiting for the reply of a later turn", async () => {
    const { queue, log, stores, submit, told } = makeQueue();
    const waiting: ((value: string) => void)[] = [];
    told(
      "a",
      queue.submit<string>((reply) => waiting.push(reply)),
    );
    stores.shift()?.();
    await settled();
    expect(log).toEqual(["finish 7"]);
    void submit("b");
    waiting[0]?.("late");
    await settled();
    expect(log).toEqual(["finish 7", "b 7", "finish 7", "told late"]);
  });
});

describe("a turn that fails", () => {
  const failing = () => {
    throw new Error("disk full");
  };

  it("rejects all its operations, even those that had replied: nothing of it was written", async () => {
    const { log, later, submit, told } = makeQueue({ crowded: true, finish: failing });
    told("a", submit("a"));
    told("b", submit("b"));
    later.shift()?.();
    await settled();
    expect(log).toEqual([
      "a 7",
      "b 7",
      "finish 7",
      "broken Error: disk full",
      "a rejected: Error: disk full",
      "b rejected: Error: disk full",
    ]);
  });

  it("runs no operation after the one that threw, and does not finish", async () => {
    const { queue, log, later, submit, told } = makeQueue({ crowded: true });
    told("a", submit("a"));
    told("bug", queue.submit<string>(failing));
    told("c", submit("c"));
    later.shift()?.();
    await settled();
    expect(log).toEqual([
      "a 7",
      "broken Error: disk full",
      "a rejected: Error: disk full",
      "bug rejected: Error: disk full",
      "c rejected: Error: disk full",
    ]);
  });

  it("does not stop the next one", async () => {
    const { log, control, submit, told } = makeQueue({ finish: failing });
    told("a", submit("a"));
    control.finish = () => {};
    told("b", submit("b"));
    await settled();
    expect(log.slice(-3)).toEqual(["finish 7", "a rejected: Error: disk full", "told b"]);
  });
});
