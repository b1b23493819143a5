import { describe, expect, it } from "vitest";
import { SendAhead } from "../../../../../src/objects/clients/groups/send-ahead.ts";

/** Pieces whose arrival the test decides. */
function pieces() {
  const started: number[] = [];
  const ends = new Map<number, { arrive: () => void; fail: (error: Error) => void }>();
  const send = (piece: number) => () =>
    new Promise<void>((arrive, fail) => {
      started.push(piece);
      ends.set(piece, { arrive, fail });
    });
  const end = (piece: number) => {
    const known = ends.get(piece);
    if (known === undefined) throw new Error(`piece ${piece} was not sent`);
    return known;
  };
  return { started, send, end };
}

/** Every continuation that can run without another event has run. */
const idle = () => new Promise((resolve) => setImmediate(resolve));

describe("pieces that are sent ahead", () => {
  it("are on their way at once as far as their sizes allow, and follow when others have arrived", async () => {
    const { started, send, end } = pieces();
    const ahead = new SendAhead(10);
    const adding = (async () => {
      for (const [piece, size] of [4, 6, 1, 10].entries()) await ahead.add(size, send(piece));
      await ahead.arrived();
    })();
    await idle();
    expect(started).toEqual([0, 1]);
    end(0).arrive();
    await idle();
    expect(started).toEqual([0, 1, 2]);
    end(1).arrive();
    await idle();
    expect(started).toEqual([0, 1, 2]);
    end(2).arrive();
    await idle();
    expect(started).toEqual([0, 1, 2, 3]);
    let isOver = false;
    void adding.then(() => (isOver = true));
    await idle();
    expect(isOver).toBe(false);
    end(3).arrive();
    await adding;
  });

  it("go alone if they are larger than the bound", async () => {
    const { started, send, end } = pieces();
    const ahead = new SendAhead(10);
    await ahead.add(50, send(0));
    const second = ahead.add(1, send(1));
    await idle();
    expect(started).toEqual([0]);
    end(0).arrive();
    await second;
    expect(started).toEqual([0, 1]);
  });

  it("are not sent after one has failed, and the failure is thrown by the next", async () => {
    const { started, send, end } = pieces();
    const ahead = new SendAhead(10);
    await ahead.add(1, send(0));
    await ahead.add(1, send(1));
    end(0).fail(new Error("refused"));
    await idle();
    await expect(ahead.add(1, send(2))).rejects.toThrow("refused");
    expect(started).toEqual([0, 1]);
  });

  it("that wait for room end with the failure of one on its way", async () => {
    const { send, end, started } = pieces();
    const ahead = new SendAhead(1);
    await ahead.add(1, send(0));
    const waiting = ahead.add(1, send(1));
    end(0).fail(new Error("refused"));
    await expect(waiting).rejects.toThrow("refused");
    expect(started).toEqual([0]);
  });

  it("have all ended when the last is waited for, and the first failure counts", async () => {
    const { send, end } = pieces();
    const ahead = new SendAhead(10);
    for (const piece of [0, 1, 2]) await ahead.add(1, send(piece));
    let isOver = false;
    const over = expect(ahead.arrived().finally(() => (isOver = true))).rejects.toThrow("first");
    end(2).fail(new Error("first"));
    end(0).fail(new Error("second"));
    await idle();
    expect(isOver).toBe(false);
    end(1).arrive();
    await over;
    await ahead.settled();
  });
});
