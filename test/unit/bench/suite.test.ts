/** Rounds of a suite, whose failure is a result, and what is measured once; levels by halves. */
import { describe, expect, it } from "vitest";
import { lastThatHolds } from "../../../bench/load/levels.ts";
import { writtenAtNs } from "../../../bench/load/paced-events.ts";
import { medianOf, reasonOf, runRounds, type Cell, type Suite } from "../../../bench/suite.ts";

const quiet = (): void => undefined;
const suiteOf = (cells: Cell[]): Suite => ({ name: "added", title: "a suite", cells, table: () => [] });

/** A cell that counts its measurements and fails in the rounds named. */
function cell(variant: string, options: Partial<Cell> & { failsIn?: number[] } = {}): Cell & { rounds: number[] } {
  const rounds: number[] = [];
  const measure = (): Promise<Record<string, number>> => {
    rounds.push(rounds.length + 1);
    if (options.failsIn?.includes(rounds.length) === true) return Promise.reject(new Error(`no ${variant}`));
    return Promise.resolve({ ms: rounds.length * 10 });
  };
  return { variant, at: 0, measure, ...options, rounds };
}

describe("runRounds", () => {
  it("goes on when a peer fails, with the reason in its round, and measures it again in the next", async () => {
    const peer = cell("smg", { mayFail: true, failsIn: [1] });
    const rounds = await runRounds(suiteOf([peer, cell("chat")]), 3, quiet);
    const ofPeer = rounds.filter(({ variant }) => variant === "smg");
    expect(ofPeer.map(({ failed }) => failed)).toEqual(["no smg", undefined, undefined]);
    expect(rounds.filter(({ variant }) => variant === "chat")).toHaveLength(3);
    expect(medianOf(rounds)("smg", 0, "ms")).toBe(25);
    expect(medianOf(rounds)("chat", 0, "ms")).toBe(20);
  });

  it("ends the bench when one of the gateway's own variants fails", async () => {
    await expect(runRounds(suiteOf([cell("chat", { failsIn: [2] })]), 3, quiet)).rejects.toThrow("no chat");
  });

  it("measures a slow cell in the first round only", async () => {
    const slow = cell("litellm", { isOnce: true });
    const fast = cell("envoy");
    await runRounds(suiteOf([slow, fast]), 3, quiet);
    expect([slow.rounds, fast.rounds]).toEqual([[1], [1, 2, 3]]);
  });
});

describe("reasonOf", () => {
  it("is one line without paths and ports of the machine", () => {
    const error = new Error(
      "/data/peers/smg-1.13.0/bin/smg launch --port 4711 ended with 1\n\n  panic at http://127.0.0.1:9100/v1\n",
    );
    expect(reasonOf(error)).toBe("… launch --port 4711 ended with 1 panic at http://127.0.0.1/v1");
  });

  it("is cut to a length that a page can show", () => {
    expect(reasonOf("x".repeat(5_000))).toHaveLength(200);
  });
});

describe("lastThatHolds", () => {
  const levels = [8, 16, 24, 32, 48, 64, 96, 128];

  it.each([0, ...levels, 1_000])("finds the last level at most %d, with few trials", async (limit) => {
    const tried: number[] = [];
    const holds = (level: number): Promise<boolean> => {
      tried.push(level);
      return Promise.resolve(level <= limit);
    };
    expect(await lastThatHolds(levels, holds)).toBe(Math.max(0, ...levels.filter((level) => level <= limit)));
    expect(tried.length).toBeLessThanOrEqual(4);
  });
});

it("reads the times of events also from a gateway that escapes brackets", () => {
  expect(writtenAtNs('{"content":"<12> and"}\n{"content":"\\u003c34\\u003e and"}')).toEqual([12n, 34n]);
});
