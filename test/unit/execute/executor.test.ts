import { afterEach, describe, expect, it, vi } from "vitest";
import type { Outcome } from "../../../src/call.ts";
import { Executor, type Claim, type ExecutorDeps, type ExecutorListener } from "../../../src/execute/executor.ts";
import { LaneDuty } from "../../../durable-objects/lane/duty.ts";
import type { WorkRules } from "../../../src/execute/rules.ts";
import { Paces } from "../../../src/execute/paces.ts";
import { CALL_SOCKET_AFTER_MS, CLAIM_BYTES_MAX, HEARTBEAT_MS } from "../../../src/limits.ts";
import type { ClaimReply, Job } from "../../../src/run-api/groups.ts";

const LANE = { callsMax: 6, waitingMax: 6, settleAtShare: 1, mergeMs: null };
const ANSWER: Outcome = { kind: "success", text: "a", model: "m", finishReason: "stop", usage: null, latencyMs: 1 };

function jobOf(attemptId: string): Job {
  const lease = { attemptId, upstream: "up", model: "m", capTokens: null, timeoutMs: 60_000 };
  return { groupSeq: 1, lease, callJson: "{}" };
}

function replyOf(jobs: Job[], more: Partial<ClaimReply> = {}): ClaimReply {
  return { jobs, epoch: 1, defaults: {}, claimMore: false, batchingDelayMs: 0, ...more };
}

/** A run that replies with what a test scripts, and what it was sent. */
function scripted(replies: (() => ClaimReply)[], more: Partial<ExecutorDeps> = {}, rules: WorkRules = LANE) {
  const claims: Claim[] = [];
  const sent: string[] = [];
  const deps: ExecutorDeps = {
    claim: async (claim) => {
      claims.push(claim);
      const reply = replies.shift();
      return reply === undefined ? replyOf([]) : reply();
    },
    heartbeat: async () => [],
    execute: async ({ lease: { attemptId } }) => {
      sent.push(attemptId);
      return { attemptId, outcome: ANSWER };
    },
    paces: new Paces(),
    openSocket: () => ({ close: () => undefined }),
    now: () => 0,
    random: () => 0,
    wait: async () => undefined,
    ...more,
  };
  const duty = new LaneDuty({ now: deps.now, nudge: () => executor.nudge(), after: () => () => undefined });
  const executor = new Executor(deps, rules, duty);
  return { executor, claims, sent };
}

const settledIn = (claims: readonly Claim[]): string[] =>
  claims.flatMap(({ settlements }) => settlements.map(({ attemptId }) => attemptId));

const unreachable = (): ClaimReply => {
  throw new Error("the object is restarting");
};

afterEach(() => vi.useRealTimers());

describe("an executor", () => {
  it("settles every attempt that it claimed, and ends when the run has nothing left for it", async () => {
    const { executor, claims, sent } = scripted([() => replyOf([jobOf("1"), jobOf("2")]), () => replyOf([jobOf("3")])]);
    await executor.run();
    expect(sent).toEqual(["1", "2", "3"]);
    expect(settledIn(claims).toSorted()).toEqual(["1", "2", "3"]);
    expect(claims[0]).toMatchObject({ settlements: [], waits: true });
  });

  it("settles once more what a call that failed may not have settled, and sends nothing twice", async () => {
    const { executor, claims, sent } = scripted([() => replyOf([jobOf("1")]), unreachable, unreachable]);
    await executor.run();
    expect(sent).toEqual(["1"]);
    expect(settledIn(claims)).toEqual(["1", "1", "1"]);
  });

  it("settles no more than one call carries, and the rest with the next", async () => {
    const text = "x".repeat(CLAIM_BYTES_MAX / 2);
    const { executor, claims } = scripted([() => replyOf([jobOf("1"), jobOf("2"), jobOf("3")])], {
      execute: async ({ lease: { attemptId } }) => ({ attemptId, outcome: { ...ANSWER, text } }),
    });
    await executor.run();
    expect(claims.map(({ settlements }) => settlements.length).filter((count) => count > 0)).toEqual([2, 1]);
  });

  it("waits for nothing while it has something to settle", async () => {
    const { executor, claims } = scripted([() => replyOf([jobOf("1")], { claimMore: true })]);
    await executor.run();
    for (const { settlements, waits } of claims) expect(waits && settlements.length > 0).toBe(false);
  });

  it("drops jobs of an instance of the run that has been replaced", async () => {
    const { executor, sent } = scripted([
      () => {
        executor.reconcile(2);
        return replyOf([jobOf("late")], { epoch: 1 });
      },
      () => replyOf([jobOf("new")], { epoch: 2 }),
    ]);
    await executor.run();
    expect(sent).toEqual(["new"]);
  });

  it("aborts the attempts that the run does not know any more", async () => {
    const aborted: string[] = [];
    const { executor } = scripted([() => replyOf([jobOf("1"), jobOf("2")])], {
      heartbeat: async () => ["2"],
      execute: ({ lease: { attemptId } }, _, { controller }) =>
        new Promise((resolve) => {
          const end = (): void => resolve({ attemptId, outcome: ANSWER });
          controller.signal.addEventListener("abort", () => {
            aborted.push(attemptId);
            end();
          });
          if (attemptId === "1") end();
        }),
    });
    vi.useFakeTimers();
    const ended = executor.run();
    await vi.advanceTimersByTimeAsync(HEARTBEAT_MS);
    await ended;
    expect(aborted).toEqual(["2"]);
  });
});

describe("an executor that lasts", () => {
  /** One that holds calls until they are ended, and its socket. */
  function lasting(replies: (() => ClaimReply)[]) {
    vi.useFakeTimers();
    const ends = new Map<string, () => void>();
    const sockets: { listener: ExecutorListener; isClosed: boolean }[] = [];
    const { executor, claims } = scripted(replies, {
      execute: ({ lease: { attemptId } }, _, { headersArrived }) => {
        headersArrived?.();
        return new Promise((resolve) => ends.set(attemptId, () => resolve({ attemptId, outcome: ANSWER })));
      },
      openSocket: (listener) => {
        const socket = { listener, isClosed: false };
        sockets.push(socket);
        return { close: () => void (socket.isClosed = true) };
      },
    });
    const ended = executor.run();
    return { executor, claims, ends, sockets, ended };
  }

  const atSocket = (): ClaimReply => replyOf([], { claimMore: true, atSocket: true });

  it("opens one socket after a moment, and closes it when it ends", async () => {
    const { ends, sockets, ended } = lasting([() => replyOf([jobOf("1")])]);
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS - 1);
    expect(sockets).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets.map(({ isClosed }) => isClosed)).toEqual([false]);
    ends.get("1")?.();
    await vi.runOnlyPendingTimersAsync();
    await ended;
    expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  it("that ends sooner opens none", async () => {
    const { sockets, ended } = lasting([]);
    await ended;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets).toHaveLength(0);
  });

  it("makes no call while it waits at its socket, and claims when slots wait", async () => {
    const { claims, sockets } = lasting([
      () => replyOf([jobOf("1")], { claimMore: true }),
      atSocket,
      () => replyOf([jobOf("2")]),
    ]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(claims).toHaveLength(2);
    sockets[0]?.listener.slotsWait();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims.at(2)).toMatchObject({ waits: true, capacity: 6 });
  });

  it("claims when it is nudged while it waits at its socket", async () => {
    const { executor, claims } = lasting([
      () => replyOf([jobOf("1")], { claimMore: true }),
      atSocket,
      () => replyOf([jobOf("2")]),
    ]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(claims).toHaveLength(2);
    executor.nudge();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims.at(2)).toMatchObject({ waits: true, capacity: 6 });
  });

  it("claims for slots whose signal overtook the reply to its claim, once it has room", async () => {
    const claims: Claim[] = [];
    const second = Promise.withResolvers<ClaimReply>();
    const arrive: (() => void)[] = [];
    const listeners: ExecutorListener[] = [];
    vi.useFakeTimers();
    const six = ["1", "2", "3", "4", "5", "6"].map(jobOf);
    const { executor } = scripted(
      [],
      {
        claim: (claim) => {
          claims.push(claim);
          if (claims.length === 1) return Promise.resolve(replyOf(six));
          return claims.length === 2 ? second.promise : new Promise(() => undefined);
        },
        execute: (_, __, { headersArrived }) => {
          arrive.push(() => headersArrived?.());
          return new Promise(() => undefined);
        },
        openSocket: (listener) => {
          listeners.push(listener);
          return { close: () => undefined };
        },
      },
      { ...LANE, callsMax: 64 },
    );
    void executor.run();
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    executor.nudge();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims).toHaveLength(2);
    listeners[0]?.slotsWait();
    second.resolve(replyOf([]));
    await vi.advanceTimersByTimeAsync(0);
    expect(claims).toHaveLength(2);
    for (const headers of arrive) headers();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims).toHaveLength(3);
  });

  it("claims when its run has news for it, also if it has no room", async () => {
    const six = ["1", "2", "3", "4", "5", "6"].map(jobOf);
    const { claims, sockets } = lasting([() => replyOf(six, { claimMore: true })]);
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    expect(claims).toHaveLength(1);
    sockets[0]?.listener.slotsWait();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(claims).toHaveLength(1);
    sockets[0]?.listener.mustClaim();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims).toHaveLength(2);
  });

  it("settles at once what ends while it waits at its socket", async () => {
    const { claims, ends } = lasting([() => replyOf([jobOf("1"), jobOf("2")], { claimMore: true }), atSocket]);
    await vi.advanceTimersByTimeAsync(60_000);
    ends.get("1")?.();
    await vi.advanceTimersByTimeAsync(1);
    expect(settledIn(claims)).toEqual(["1"]);
  });

  it("is a lane without calls, and ends where it would wait at its socket", async () => {
    const { sockets, ended } = lasting([atSocket]);
    await ended;
    expect(sockets).toHaveLength(0);
  });
});
