import { describe, expect, it } from "vitest";
import { readAhead } from "../../../../src/http/replies/read-ahead.ts";

/** A source that records which pages were read, and whether it was ended. */
function source(count: number, failsAt = Infinity) {
  const read: number[] = [];
  const seen = { isEnded: false };
  async function* pages(): AsyncGenerator<number> {
    try {
      for (let page = 0; page < count; page++) {
        await Promise.resolve();
        if (page === failsAt) throw new Error(`page ${page} is lost`);
        read.push(page);
        yield page;
      }
    } finally {
      seen.isEnded = true;
    }
  }
  return { read, seen, pages };
}

const idle = () => new Promise((resolve) => setImmediate(resolve));

describe("pages that are read ahead", () => {
  it.each([0, 1, 2, 3, 10])("are all there, in order, if there are %d", async (count) => {
    const { pages } = source(count);
    const got: number[] = [];
    for await (const page of readAhead(pages(), 2)) got.push(page);
    expect(got).toEqual(Array.from({ length: count }, (_, page) => page));
  });

  it("are two more than the consumer has, and no more while it keeps it", async () => {
    const { read, pages } = source(10);
    const ahead = readAhead(pages(), 2);
    expect(read).toEqual([]);
    expect(await ahead.next()).toEqual({ done: false, value: 0 });
    await idle();
    expect(read).toEqual([0, 1, 2]);
    await ahead.next();
    await idle();
    expect(read).toEqual([0, 1, 2, 3]);
    await ahead.return(undefined);
  });

  it("fail where the source does, after the pages before it", async () => {
    const { pages } = source(5, 2);
    const got: number[] = [];
    const reading = (async () => {
      for await (const page of readAhead(pages(), 2)) got.push(page);
    })();
    await expect(reading).rejects.toThrow("page 2 is lost");
    expect(got).toEqual([0, 1]);
  });

  it("end with their consumer", async () => {
    const { read, seen, pages } = source(100);
    for await (const page of readAhead(pages(), 2)) if (page === 3) break;
    await idle();
    expect(seen.isEnded).toBe(true);
    expect(read.length).toBeLessThanOrEqual(6);
  });

  it("whose failure nobody waits for end nothing else", async () => {
    const { pages } = source(5, 1);
    const ahead = readAhead(pages(), 2);
    await ahead.next();
    await ahead.return(undefined);
    await idle();
  });
});
