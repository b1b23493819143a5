import { describe, expect, it } from "vitest";
import { HeldTexts } from "../../../../src/executors/contexts/held-texts.ts";

const text = (bytes: number) => Promise.resolve(new Uint8Array(bytes));

/** Texts with a clock, and how often each was loaded. */
function world(bytesMax: number, entryBytes = 0) {
  const clock = { nowMs: 0 };
  const texts = new HeldTexts({ bytesMax, entryBytes, idleMsMax: 500, ageMsMax: 1_000 }, () => clock.nowMs);
  const loads: string[] = [];
  const take = (name: string, bytes: number) =>
    texts.take(name, bytes, () => {
      loads.push(name);
      return text(bytes);
    });
  return { texts, clock, loads, take };
}

describe("the texts that an isolate holds", () => {
  it("are read once for all calls that send them together, and again after others took their room", async () => {
    const { texts, loads, take } = world(100);
    const held = await Promise.all(Array.from({ length: 1_000 }, () => take("a", 60)));
    expect([loads.length, texts.held.bytes]).toEqual([1, 60]);
    for (const each of held) each?.release();
    await take("a", 60);
    expect(loads).toEqual(["a"]);
  });

  it("never are more than fit, whoever waits", async () => {
    const { texts, loads, take } = world(100);
    const sendAll = Array.from({ length: 1_000 }, async (_, index) => {
      const held = await take(`chunk ${index}`, 10);
      await Promise.resolve();
      held?.release();
    });
    await Promise.all(sendAll);
    expect(loads.length).toBe(1_000);
    expect(texts.held.bytesPeak).toBe(100);
  });

  it("take one alone, however large it is", async () => {
    const { take } = world(100);
    const large = await take("large", 1_000);
    expect(large?.bytes.length).toBe(1_000);
    let isThere = false;
    const next = take("next", 10).then((held) => (isThere = held !== null));
    await Promise.resolve();
    expect(isThere).toBe(false);
    large?.release();
    large?.release();
    expect(await next).toBe(true);
  });

  it("are counted with what holding one takes, so that only so many tiny ones fit", async () => {
    const { texts, loads, take } = world(100, 19);
    for (let index = 0; index < 6; index += 1) (await take(`tiny ${index}`, 1))?.release();
    expect(texts.held).toEqual({ bytes: 100, bytesPeak: 100 });
    await take("tiny 0", 1);
    expect(loads.at(-1)).toBe("tiny 0");
  });

  it("are dropped when no call has used them for a while, but not while one sends them", async () => {
    const { texts, clock, take } = world(100);
    await take("sent", 10);
    (await take("idle", 20))?.release();
    clock.nowMs = 499;
    (await take("late", 40))?.release();
    expect(texts.held.bytes).toBe(70);
    clock.nowMs = 500;
    (await take("late", 40))?.release();
    expect(texts.held.bytes).toBe(50);
  });

  it("do not wait for a request that the runtime has dropped", async () => {
    const { clock, take } = world(100);
    await take("dropped", 100);
    clock.nowMs = 1_000;
    expect(await take("next", 100)).not.toBeNull();
  });

  it("are tried once more after they were not there, or not readable", async () => {
    const { texts } = world(100);
    expect(await texts.take("a", 10, () => Promise.resolve(null))).toBeNull();
    await expect(texts.take("a", 10, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect((await texts.take("a", 10, () => text(10)))?.bytes.length).toBe(10);
    expect(texts.held.bytes).toBe(10);
  });
});
