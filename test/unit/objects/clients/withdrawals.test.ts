/** Clients of one run that leave together: how many calls to its object that takes, and that each of them is withdrawn. */
import { describe, expect, it } from "vitest";
import { PERMITS_PER_REQUEST_MAX } from "../../../../src/limits.ts";
import { Withdrawals, type WithdrawalDeps } from "../../../../src/objects/clients/withdrawals.ts";

type Sent = { callIds: string[]; arrive: () => void; fail: () => void };

/** A run object that replies when the test says so, and guards that go off when the test says so. */
function makeIsolate() {
  const withdrawals = new Withdrawals();
  const sent: Sent[] = [];
  const guards: (() => void)[] = [];
  const deps: WithdrawalDeps = {
    send: (callIds) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      sent.push({ callIds, arrive: resolve, fail: () => reject(new Error("the object is gone")) });
      return promise;
    },
    endedWithin: (promise) =>
      new Promise((resolve) => {
        guards.push(() => resolve(false));
        void promise.then(() => resolve(true));
      }),
  };
  const over: string[] = [];
  const leave = async (callId: string, runId = "run"): Promise<void> => {
    await withdrawals.withdraw(runId, callId, deps);
    over.push(callId);
  };
  return { withdrawals, sent, guards, over, leave };
}

/** Lets all promises run. */
const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("calls of one run whose clients leave", () => {
  it("share a call to its object while another is under way: 200 take two", async () => {
    const { withdrawals, sent, over, leave } = makeIsolate();
    const names = Array.from({ length: 200 }, (_, at) => `call-${at}`);
    const left = names.map((name) => leave(name));
    expect(sent.map(({ callIds }) => callIds)).toEqual([["call-0"]]);
    sent[0]?.arrive();
    await turns();
    expect(over).toEqual(["call-0"]);
    sent[1]?.arrive();
    await Promise.all(left);
    expect(sent.map(({ callIds }) => callIds.length)).toEqual([1, 199]);
    expect([new Set(over).size, withdrawals.size]).toEqual([200, 0]);
  });

  it("are withdrawn by another, if the request that withdraws them has ended with its client", async () => {
    const { withdrawals, sent, guards, over, leave } = makeIsolate();
    void leave("gone");
    const left = [leave("b"), leave("c")];
    for (const expire of guards.splice(0)) expire();
    await turns();
    expect(sent.map(({ callIds }) => callIds)).toEqual([["gone"], ["b", "gone", "c"]]);
    sent[1]?.arrive();
    await Promise.all(left);
    expect(over.toSorted()).toEqual(["b", "c"]);
    // Its request does nothing any more, so the others forget its call.
    expect(withdrawals.size).toBe(0);
    sent[0]?.arrive();
    await turns();
    expect(withdrawals.size).toBe(0);
  });

  it("are given up if the object cannot be reached: it notices by itself", async () => {
    const { withdrawals, sent, leave } = makeIsolate();
    const left = [leave("a"), leave("b")];
    sent[0]?.fail();
    await turns();
    sent[1]?.fail();
    await Promise.all(left);
    expect([sent.map(({ callIds }) => callIds), withdrawals.size]).toEqual([[["a"], ["b"]], 0]);
  });

  it("are so many in one request that its size is bounded", async () => {
    const { sent, leave } = makeIsolate();
    const left = Array.from({ length: PERMITS_PER_REQUEST_MAX + 2 }, (_, at) => leave(`call-${at}`));
    for (let at = 0; at < 3; at += 1) {
      sent[at]?.arrive();
      await turns();
    }
    await Promise.all(left);
    expect(sent.map(({ callIds }) => callIds.length)).toEqual([1, PERMITS_PER_REQUEST_MAX, 1]);
  });

  it("of another run wait for none of them", async () => {
    const { sent, leave } = makeIsolate();
    const left = [leave("a"), leave("b", "other")];
    expect(sent.map(({ callIds }) => callIds)).toEqual([["a"], ["b"]]);
    for (const { arrive } of sent) arrive();
    await Promise.all(left);
  });
});
