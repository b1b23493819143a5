import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Outcome } from "../../../src/call.ts";
import { Executor, type Claim, type ExecutorDeps, type ExecutorListener } from "../../../src/executors/executor.ts";
import { LaneDuty } from "../../../durable-objects/lane/duty.ts";
import { WorkerDuty } from "../../../src/executors/worker-duty.ts";
import type { WorkRules } from "../../../src/executors/rules.ts";
import { Paces } from "../../../src/executors/paces.ts";
import {
  BEGUN_AT_ONCE_MAX,
  CALL_SOCKET_AFTER_MS,
  CLAIM_BYTES_MAX,
  EXECUTOR_LEASE_MS,
  HEARTBEAT_AFTER_SOCKET_MS,
  HEARTBEAT_MS,
  LANES_JOIN_MS,
  SOCKET_RENEW_MS,
  WORKER_GATHER_MS,
} from "../../../src/limits.ts";
import type { ClaimReply, Job, Settlement } from "../../../src/objects/methods/groups.ts";

const LANE = { callsMax: 6, waitingMax: 6, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 };
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

describe("an executor whose run says that only the end of its group waits", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("gathers answers before it settles them", async () => {
    const ends = new Map<string, (settlement: Settlement) => void>();
    const execute: ExecutorDeps["execute"] = ({ lease: { attemptId } }) =>
      new Promise((resolve) => ends.set(attemptId, resolve));
    const group = { ended: [], awaitsEnd: true, aborted: [], lanes: [], view: null } as const;
    const granted = replyOf([jobOf("1.1"), jobOf("2.1"), jobOf("3.1")], {
      group: { ...group, ended: [], aborted: [], lanes: [] },
    });
    const rules = { callsMax: 8, waitingMax: 8, settleAtShare: 1, mergeMs: 2, shortMergeMs: 2 };
    const { executor, claims } = scripted([() => granted], { execute }, rules);
    const ran = executor.run();
    const passes = async (ms: number): Promise<number> => {
      await vi.advanceTimersByTimeAsync(ms);
      return settledIn(claims).length;
    };
    await passes(0);
    ends.get("1.1")?.({ attemptId: "1.1", outcome: ANSWER });
    ends.get("2.1")?.({ attemptId: "2.1", outcome: ANSWER });
    expect(await passes(WORKER_GATHER_MS - 1)).toBe(0);
    expect(await passes(1)).toBe(2);
    ends.get("3.1")?.({ attemptId: "3.1", outcome: ANSWER });
    expect(await passes(0)).toBe(3);
    await ran;
  });
});

describe("an executor that is granted much", () => {
  const rules = { callsMax: 512, waitingMax: 512, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 };
  const jobs = (count: number, from = 0) => Array.from({ length: count }, (_, index) => jobOf(`${from + index}.1`));

  /** Waits that end when a test says so. */
  function held() {
    const waits: (() => void)[] = [];
    const wait = (): Promise<void> => new Promise((resolve) => waits.push(resolve));
    const pass = async (): Promise<void> => {
      waits.shift()?.();
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
    };
    return { wait, pass };
  }

  it("lets each piece of it leave before it begins the next, and aborts what has yet to begin", async () => {
    const { wait, pass } = held();
    const granted = replyOf(jobs(2 * BEGUN_AT_ONCE_MAX + 2));
    const aborted: string[] = [];
    const execute: ExecutorDeps["execute"] = async ({ lease: { attemptId } }, _, { controller }) => {
      sent.push(attemptId);
      if (controller.signal.aborted) aborted.push(attemptId);
      return { attemptId, outcome: ANSWER };
    };
    const { executor, claims, sent } = scripted([() => granted], { wait, execute }, rules);
    const ran = executor.run();
    const begun: number[] = [];
    await pass();
    begun.push(sent.length);
    expect(executor.attemptIds()).toContain(`${2 * BEGUN_AT_ONCE_MAX + 1}.1`);
    executor.abort([`${2 * BEGUN_AT_ONCE_MAX + 1}.1`]);
    for (let piece = 0; piece < 2; piece++) {
      await pass();
      begun.push(sent.length);
    }
    await ran;
    expect(begun).toEqual([BEGUN_AT_ONCE_MAX, 2 * BEGUN_AT_ONCE_MAX, 2 * BEGUN_AT_ONCE_MAX + 2]);
    expect(aborted).toEqual([`${2 * BEGUN_AT_ONCE_MAX + 1}.1`]);
    expect(settledIn(claims)).toHaveLength(2 * BEGUN_AT_ONCE_MAX + 2);
  });

  it("lets what the opening of its group has granted leave before it claims the rest", async () => {
    const { wait, pass } = held();
    const { executor, claims, sent } = scripted([() => replyOf(jobs(2, 9))], { wait }, rules);
    const ran = executor.run(replyOf(jobs(2), { claimMore: true }));
    expect([sent.length, claims.length]).toEqual([2, 0]);
    await pass();
    await ran;
    expect(claims[0]?.capacity).toBe(512);
    expect(sent).toHaveLength(4);
  });
});

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

describe("a reply that comes after that to a later claim", () => {
  /** A run that replies when a test says so; claims in the order in which they were sent. */
  function slow(duty: "lane" | "worker") {
    const claims: { claim: Claim; reply: (reply: ClaimReply) => void; fail: () => void }[] = [];
    const ends = new Map<string, () => void>();
    const deps: ExecutorDeps = {
      claim: (claim) =>
        new Promise((resolve, reject) => {
          claims.push({ claim, reply: resolve, fail: () => reject(new Error("the object is restarting")) });
        }),
      heartbeat: async () => [],
      execute: ({ lease: { attemptId } }) =>
        new Promise((resolve) => ends.set(attemptId, () => resolve({ attemptId, outcome: ANSWER }))),
      paces: new Paces(),
      openSocket: () => ({ close: () => undefined }),
      now: () => 0,
      random: () => 0,
      wait: async () => undefined,
    };
    const common = { now: deps.now, nudge: () => executor.nudge(), after: () => () => undefined };
    const executor: Executor = new Executor(
      deps,
      LANE,
      duty === "lane"
        ? new LaneDuty(common)
        : new WorkerDuty({ ...common, replied: () => undefined, mayReplace: false }),
    );
    vi.useFakeTimers();
    let hasEnded = false;
    void executor.run().then(() => (hasEnded = true));
    const soon = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(20));
    return { claims, ends, soon, hasEnded: () => hasEnded };
  }

  it("brings attempts that a lane settles, although the later reply had nothing for it", async () => {
    const { claims, ends, soon, hasEnded } = slow("lane");
    claims[0]?.reply(replyOf([jobOf("1")], { claimMore: true }));
    await soon();
    // The second waits for work, the third settles.
    ends.get("1")?.();
    await soon();
    expect(claims.map(({ claim: { waits } }) => waits)).toEqual([true, true, false]);
    claims[2]?.reply(replyOf([]));
    await soon();
    expect(hasEnded()).toBe(false);
    claims[1]?.reply(replyOf([jobOf("2")]));
    await soon();
    ends.get("2")?.();
    await soon();
    expect(settledIn(claims.map(({ claim }) => claim))).toEqual(["1", "2"]);
    claims[3]?.reply(replyOf([]));
    await soon();
    expect(hasEnded()).toBe(true);
  });

  it("is not made if that claim named all attempts that the Worker had, for its run has lost it", async () => {
    const { claims, ends, soon } = slow("worker");
    claims[0]?.reply(replyOf([jobOf("1")], { claimMore: true }));
    await soon();
    ends.get("1")?.();
    await soon();
    expect(claims.map(({ claim: { waits } }) => waits)).toEqual([true, true, false]);
    claims[2]?.fail();
    await soon();
    expect(claims[3]?.claim.worker?.holds).toEqual(["1"]);
    claims[1]?.reply(replyOf([jobOf("2")]));
    await soon();
    expect([...ends.keys()]).toEqual(["1"]);
    claims[3]?.reply(replyOf([jobOf("3")]));
    await soon();
    expect([...ends.keys()]).toEqual(["1", "3"]);
  });
});

describe("a claim that was sent before the attempts of an earlier reply were known", () => {
  it.each([
    { says: "nothing is left", reply: replyOf([]) },
    { says: "it must wait at its socket", reply: replyOf([], { claimMore: true, atSocket: true }) },
  ])("does not keep the executor from claiming for its room, if its reply says that $says", async ({ reply }) => {
    vi.useFakeTimers();
    const claims: { capacity: number; reply: (reply: ClaimReply) => void }[] = [];
    const headers: (() => void)[] = [];
    const listeners: ExecutorListener[] = [];
    const { executor } = scripted(
      [],
      {
        claim: ({ capacity }) => new Promise((resolve) => claims.push({ capacity, reply: resolve })),
        execute: (_, __, { headersArrived }) => {
          headers.push(() => headersArrived?.());
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
    // A signal makes it claim once more, with the capacity of the first claim.
    listeners[0]?.slotsWait();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims.map(({ capacity }) => capacity)).toEqual([6, 6]);
    claims[0]?.reply(replyOf(["1", "2", "3", "4", "5", "6"].map(jobOf), { claimMore: true }));
    await vi.advanceTimersByTimeAsync(0);
    claims[1]?.reply(reply);
    for (const arrived of headers) arrived();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(claims.map(({ capacity }) => capacity)).toEqual([6, 6, 12]);
  });
});

describe("a lane whose six fetches wait for headers", () => {
  /** Such a lane, the reply to its first claim, and the claims that it has sent. Headers never come. */
  async function full(claimMore: boolean) {
    vi.useFakeTimers();
    const claims: (Pick<Claim, "reach" | "waits"> & { reply: (reply: ClaimReply) => void })[] = [];
    const listeners: ExecutorListener[] = [];
    const duty = new LaneDuty({
      now: Date.now,
      nudge: () => executor.nudge(),
      after: (ms, callback) => {
        const timer = setTimeout(callback, ms);
        return () => clearTimeout(timer);
      },
    });
    const executor = new Executor(
      {
        claim: ({ reach, waits }) => new Promise((reply) => claims.push({ reach, waits, reply })),
        heartbeat: async () => [],
        execute: () => new Promise(() => undefined),
        paces: new Paces(),
        openSocket: (listener) => {
          listeners.push(listener);
          return { close: () => undefined };
        },
        now: Date.now,
        random: () => 0,
        wait: async () => undefined,
      },
      { ...LANE, callsMax: 64 },
      duty,
    );
    void executor.run();
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    const fill = async (): Promise<void> => {
      claims[0]?.reply(replyOf(["1", "2", "3", "4", "5", "6"].map(jobOf), { claimMore }));
      await vi.advanceTimersByTimeAsync(0);
    };
    return { executor, claims, listeners, fill };
  }

  it("reports how far it reaches although the reply to an older claim of its says that nothing is left", async () => {
    const { executor, claims, fill } = await full(true);
    // The run's alarm starts the lane a second time, because its first claim takes long to arrive.
    executor.nudge();
    await vi.advanceTimersByTimeAsync(0);
    expect(claims.map(({ waits }) => waits)).toEqual([true, true]);
    await fill();
    claims[1]?.reply(replyOf([]));
    await vi.advanceTimersByTimeAsync(LANES_JOIN_MS);
    expect(claims.map(({ reach }) => reach)).toEqual([null, null, 64]);
  });

  it("reports it for slots that the run signals after a reply without any", async () => {
    const { claims, listeners, fill } = await full(false);
    await fill();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(claims).toHaveLength(1);
    listeners[0]?.slotsWait();
    await vi.advanceTimersByTimeAsync(LANES_JOIN_MS);
    expect(claims.at(-1)?.reach).toBe(64);
  });
});

describe("an executor that lasts", () => {
  /** One that holds calls until they are ended, and its socket. */
  function lasting(replies: (() => ClaimReply)[], beaten: () => void = () => undefined) {
    vi.useFakeTimers();
    const startedMs = Date.now();
    const stopped: string[] = [];
    const ends = new Map<string, () => void>();
    const sockets: { listener: ExecutorListener; isClosed: boolean }[] = [];
    const { executor, claims } = scripted(replies, {
      heartbeat: async () => {
        beaten();
        return [];
      },
      execute: ({ lease: { attemptId } }, _, { headersArrived, controller }) => {
        headersArrived?.();
        controller.signal.addEventListener("abort", () => stopped.push(attemptId));
        return new Promise((resolve) => ends.set(attemptId, () => resolve({ attemptId, outcome: ANSWER })));
      },
      openSocket: (listener) => {
        const socket = { listener, isClosed: false };
        sockets.push(socket);
        return { close: () => void (socket.isClosed = true) };
      },
    });
    const ended = executor.run();
    return { executor, claims, ends, sockets, ended, stopped, startedMs };
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

  it("names at its socket what it has, and what it has not settled for certain", async () => {
    const held: (() => string[])[] = [];
    const whileSettling: (string[] | undefined)[] = [];
    const { ends, sockets } = lasting([
      () => replyOf([jobOf("1"), jobOf("2")]),
      () => {
        whileSettling.push(held[0]?.().toSorted());
        return replyOf([]);
      },
    ]);
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    held.push(() => sockets[0]?.listener.holds() ?? []);
    expect(held[0]?.()).toEqual(["1", "2"]);
    ends.get("1")?.();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(whileSettling).toEqual([["1", "2"]]);
    expect(held[0]?.()).toEqual(["2"]);
  });

  it("sends no heartbeats while its run renews its leases at sockets, and some before they end if it does not", async () => {
    const beats: number[] = [];
    const { sockets, startedMs } = lasting([() => replyOf([jobOf("1")])], () => beats.push(Date.now()));
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    for (let opened = 0; opened < 4; opened += 1) {
      sockets[0]?.listener.held([]);
      await vi.advanceTimersByTimeAsync(SOCKET_RENEW_MS);
    }
    expect(beats).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    const renewedMs = startedMs + CALL_SOCKET_AFTER_MS + 3 * SOCKET_RENEW_MS;
    expect(beats.slice(0, 2)).toEqual([
      renewedMs + HEARTBEAT_AFTER_SOCKET_MS,
      renewedMs + HEARTBEAT_AFTER_SOCKET_MS + HEARTBEAT_MS,
    ]);
    // Two come before its leases end.
    expect(HEARTBEAT_AFTER_SOCKET_MS + HEARTBEAT_MS).toBeLessThan(EXECUTOR_LEASE_MS);
  });

  it("stops what its run says at the socket is lost", async () => {
    const { sockets, stopped } = lasting([() => replyOf([jobOf("1"), jobOf("2")])]);
    await vi.advanceTimersByTimeAsync(CALL_SOCKET_AFTER_MS);
    sockets[0]?.listener.held(["2"]);
    expect(stopped).toEqual(["2"]);
  });

  it("is a lane without calls, and ends where it would wait at its socket", async () => {
    const { sockets, ended } = lasting([atSocket]);
    await ended;
    expect(sockets).toHaveLength(0);
  });
});
