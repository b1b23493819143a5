import { describe, expect, it } from "vitest";
import { ABANDONED_MS, PULL_ENDED_KEPT } from "../../../../src/limits.ts";
import { answerFor } from "../../../../src/run/pull/answer.ts";
import { PullBoard, type PullClaim } from "../../../../src/run/pull/board.ts";

const ANSWER = { status: 200, body: "x" };
const offerOf = (attemptId: string, model = "m") => ({ attemptId, upstream: "u", model, requestJson: "{}", dueMs: 9 });

function boardWith(...attemptIds: string[]): PullBoard {
  const board = new PullBoard();
  for (const attemptId of attemptIds) board.offer(offerOf(attemptId));
  return board;
}

let secrets = 0;
const claim = (board: PullBoard, nowMs: number, request: Partial<PullClaim> = {}): string[] =>
  board
    .claim({ models: null, max: 1, leaseMs: 100, ...request }, (id) => `${id}~${secrets++}`, nowMs)
    .map(({ leaseId }) => leaseId);
function claimOne(board: PullBoard, nowMs: number): string {
  const [leaseId] = claim(board, nowMs);
  if (leaseId === undefined) throw new Error("nothing is free");
  return leaseId;
}

describe("a board", () => {
  it("leases items in the order of their offers, each once", () => {
    const board = boardWith("1.1", "2.1", "3.1");
    expect(claim(board, 0, { max: 2 }).map((id) => id.split("~")[0])).toEqual(["1.1", "2.1"]);
    expect(claim(board, 0, { max: 9 }).map((id) => id.split("~")[0])).toEqual(["3.1"]);
    expect(board.hasFor({ models: null }, 0)).toBe(false);
  });

  it("takes an answer until the lease expires, and not a millisecond longer", () => {
    const board = boardWith("1.1", "2.1");
    const [first, second] = [claimOne(board, 0), claimOne(board, 0)];
    expect(board.deliver(first, ANSWER, 100)).toBe("held");
    expect(board.deliver(second, ANSWER, 101)).toBe("expired");
    expect(board.answerOf("1.1")).toEqual(ANSWER);
  });

  it("gives an expired item to the next worker, whose lease alone counts", () => {
    const board = boardWith("1.1");
    const late = claimOne(board, 0);
    expect(claim(board, 100)).toEqual([]);
    const next = claimOne(board, 101);
    expect(board.renew(late, 100, 102)).toBe("expired");
    expect(board.deliver(late, ANSWER, 102)).toBe("expired");
    expect(board.deliver(next, ANSWER, 102)).toBe("held");
    expect(claim(board, 500)).toEqual([]);
  });

  it("renews a lease from now on", () => {
    const board = boardWith("1.1");
    const lease = claimOne(board, 0);
    expect(board.renew(lease, 100, 90)).toBe(190);
    expect(board.deliver(lease, ANSWER, 190)).toBe("held");
    expect(board.renew(lease, 100, 190)).toBe("completed");
  });

  it("recognises a repeated delivery, before and after its attempt has ended, and refuses another one", () => {
    const board = boardWith("1.1");
    const lease = claimOne(board, 0);
    const other = { status: 200, body: "y" };
    board.deliver(lease, ANSWER, 1);
    expect([board.deliver(lease, ANSWER, 2), board.deliver(lease, other, 2)]).toEqual(["held", "completed"]);
    board.offerEnded("1.1", 3);
    board.withdraw("1.1");
    expect([board.deliver(lease, ANSWER, 4), board.deliver(lease, other, 4)]).toEqual(["repeated", "completed"]);
  });

  it("says that an item was cancelled if its executor left before it had the answer", () => {
    const board = boardWith("1.1");
    const lease = claimOne(board, 0);
    board.withdraw("1.1");
    expect([board.renew(lease, 100, 1), board.deliver(lease, ANSWER, 1)]).toEqual(["cancelled", "cancelled"]);
  });

  it("drops items whose executors do not come back, and keeps those that do", () => {
    const board = boardWith("1.1", "2.1");
    board.offerEnded("1.1", 0);
    board.offerEnded("2.1", 0);
    board.offer({ ...offerOf("2.1"), requestJson: null });
    board.prune(ABANDONED_MS - 1);
    expect([board.has("1.1"), board.has("2.1")]).toEqual([true, true]);
    board.prune(ABANDONED_MS);
    expect([board.has("1.1"), board.has("2.1")]).toEqual([false, true]);
  });

  it("after a restart keeps the lease of a worker that comes back first, and of no other", () => {
    const [before, board] = [boardWith("1.1"), boardWith("1.1")];
    const lease = claimOne(before, 0);
    expect(board.renew(lease, 100, 5)).toBe(105);
    expect(claim(board, 6)).toEqual([]);
    expect(board.deliver("1.1~other", ANSWER, 6)).toBe("unknown");
    expect(board.deliver(lease, ANSWER, 6)).toBe("held");
  });

  it("does not know an item without its request, or a lease of none", () => {
    const board = new PullBoard();
    board.offer({ ...offerOf("1.1"), requestJson: null });
    expect([board.has("1.1"), board.deliver("1.1~x", ANSWER, 0)]).toEqual([false, "unknown"]);
  });

  it("remembers a bounded number of ended leases", () => {
    const board = new PullBoard();
    const ended = Array.from({ length: PULL_ENDED_KEPT + 1 }, (_, index) => {
      board.offer(offerOf(`${index}.1`));
      const lease = claimOne(board, 0);
      board.withdraw(`${index}.1`);
      return lease;
    });
    expect(board.renew(ended[0] ?? "", 100, 0)).toBe("unknown");
    expect(board.renew(ended[1] ?? "", 100, 0)).toBe("cancelled");
  });

  it.each([
    [null, true],
    [["u"], true],
    [["u/m"], true],
    [["m"], false],
    [["u/n"], false],
  ])("has an item of u/m for a worker that names %j: %s", (models, found) => {
    expect(boardWith("1.1").hasFor({ models }, 0)).toBe(found);
  });
});

describe("an answer", () => {
  it("is a chat completion with the usage that the worker names, or none", () => {
    const usage = { promptTokens: 1, completionTokens: 2, costUsd: 0.5 };
    expect(
      JSON.parse(answerFor({ message: { role: "assistant", content: "t" }, finishReason: "length", usage }).body),
    ).toEqual({
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "t" }, finish_reason: "length" }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 0.5 },
    });
    expect(
      JSON.parse(answerFor({ message: { role: "assistant", content: "t" }, finishReason: "stop", usage: null }).body),
    ).not.toHaveProperty("usage");
  });

  it("is an error that is retried or not, as the worker says", () => {
    const statusOf = (retryable: boolean) => answerFor({ error: { message: "no", retryable } }).status;
    expect([statusOf(true), statusOf(false)]).toEqual([503, 422]);
  });
});
