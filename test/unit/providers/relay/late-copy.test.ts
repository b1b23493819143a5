import { describe, expect, it } from "vitest";
import { COPY_LOOK_BYTES, COPY_LOOK_FIRST_MS, COPY_LOOK_MS, COPY_WAITING_BYTES } from "../../../../src/limits.ts";
import { nextDelayMs, readLate } from "../../../../src/providers/relay/late-copy.ts";
import { FakeTimer, Source } from "./make.ts";

/** Reads a source late, by a timer that only the test moves. */
function reading(source: Source) {
  const timer = new FakeTimer();
  const over = Promise.withResolvers<void>();
  const fed: string[] = [];
  const feed = (chunk: Uint8Array): void => void fed.push(new TextDecoder().decode(chunk));
  const end = readLate(source.stream, { feed, timer: timer.start, over: over.promise });
  return { timer, over: over.resolve, fed, end };
}

/** Lets everything run that waits for nothing. */
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("a copy", () => {
  it("is not read before its first look, and then as far as it has come", async () => {
    const source = new Source();
    const { timer, fed, over, end } = reading(source);
    source.push("a");
    source.push("b");
    await settled();
    expect([fed, timer.pendingMs]).toEqual([[], [COPY_LOOK_FIRST_MS]]);
    timer.elapse();
    await settled();
    expect(fed.join("")).toBe("ab");
    expect(timer.pendingMs).toEqual([2 * COPY_LOOK_FIRST_MS]);
    source.close();
    over();
    expect(await end).toBe("clean");
  });

  it("takes no more than one small read's bytes of its source by a look that finds nothing", async () => {
    const source = new Source(() => "x".repeat(COPY_WAITING_BYTES - 1));
    const { timer } = reading(source);
    for (let look = 1; look <= 3; look++) {
      timer.elapse();
      await settled();
      expect(source.pulled).toBe(look);
    }
  });

  it("is read to its end without a pause when its original is over", async () => {
    const texts = Array.from({ length: 50 }, (_, at) => `${at} `.padEnd(3_000, "x"));
    const { timer, fed, over, end } = reading(Source.of(...texts));
    over();
    expect(await end).toBe("clean");
    expect(fed.join("")).toBe(texts.join(""));
    expect(timer.pendingMs).toEqual([]);
  });

  it("that breaks has fed what came before", async () => {
    const source = new Source((at) => (at < 2 ? "a" : (source.break(), "")));
    const { fed, over, end } = reading(source);
    over();
    expect(await end).toBe("broken");
    expect(fed).toEqual(["a", "a"]);
  });
});

describe("the pause before the next look", () => {
  it("doubles while little comes, up to its bound", () => {
    let delayMs = COPY_LOOK_FIRST_MS;
    for (let look = 0; look < 10; look++) {
      const next = nextDelayMs(delayMs, 100);
      expect(next).toBe(Math.min(COPY_LOOK_MS, 2 * delayMs));
      delayMs = next;
    }
    expect(delayMs).toBe(COPY_LOOK_MS);
  });

  it("is as long as a look's share takes to arrive", () => {
    expect(nextDelayMs(100, COPY_LOOK_BYTES)).toBe(100);
    expect(nextDelayMs(100, 4 * COPY_LOOK_BYTES)).toBe(25);
    expect(nextDelayMs(1, 1_000 * COPY_LOOK_BYTES)).toBe(1);
  });
});
