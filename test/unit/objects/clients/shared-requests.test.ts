/** Calls of one run that ask its object for the same: how many requests that takes, and that each of them gets its reply. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  FAR_OBJECT_MS_MIN,
  PERMIT_GUARD_MS,
  PERMITS_PER_REQUEST_MAX,
  SHARED_REQUESTS_MAX,
  SHARING_RUNS_MAX,
} from "../../../../src/limits.ts";
import { SharedRequests, type SharedRequestDeps } from "../../../../src/objects/clients/shared-requests.ts";

type Sent = { asked: readonly string[]; reply: () => void; fail: (error: Error) => void };

/** A run object that replies when the test says so, and guards that go off when the test says so. */
function makeIsolate() {
  const requests = new SharedRequests<string, string>();
  const sent: Sent[] = [];
  const guards: (() => void)[] = [];
  const deps: SharedRequestDeps<string, string> = {
    send: (asked) => {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>();
      sent.push({ asked, reply: () => resolve(asked.map((call) => `of ${call}`)), fail: reject });
      return promise;
    },
    endedWithin: (promise) =>
      new Promise((resolve) => {
        guards.push(() => resolve(false));
        void promise.then(() => resolve(true));
      }),
    // An object whose replies take no time is near.
    now: () => 0,
  };
  const ends: string[] = [];
  const ask = async (call: string, runId = "run"): Promise<void> => {
    const ended = requests.replyTo(runId, call, deps).catch((error: unknown) => String(error));
    ends.push(`${call}: ${await ended}`);
  };
  const expireGuards = (): void => {
    for (const expire of guards.splice(0)) expire();
  };
  return { requests, sent, expireGuards, ends, ask };
}

/** Lets all promises run. */
const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("calls of one run that ask for the same", () => {
  it("share a request while another is under way: 200 take two", async () => {
    const { requests, sent, ends, ask } = makeIsolate();
    const names = Array.from({ length: 200 }, (_, at) => `call-${at}`);
    const asked = names.map((name) => ask(name));
    expect(sent.map((one) => one.asked)).toEqual([["call-0"]]);
    sent[0]?.reply();
    await turns();
    expect(ends).toEqual(["call-0: of call-0"]);
    sent[1]?.reply();
    await Promise.all(asked);
    expect(sent.map((one) => one.asked.length)).toEqual([1, 199]);
    expect(ends).toEqual(names.map((name) => `${name}: of ${name}`));
    expect(requests.size).toBe(0);
  });

  it("are asked for by another one, if the client's request that asks for them has ended", async () => {
    const { requests, sent, expireGuards, ends, ask } = makeIsolate();
    void ask("gone");
    const asked = [ask("b"), ask("c")];
    expireGuards();
    await turns();
    expect(sent.map((one) => one.asked)).toEqual([["gone"], ["b", "gone", "c"]]);
    sent[1]?.reply();
    // Nothing runs any more in a request that has ended: neither its call nor its run may stay for it.
    expect(requests.size).toBe(1);
    await Promise.all(asked);
    expect(ends.toSorted()).toEqual(["b: of b", "c: of c"]);
    expect(requests.size).toBe(0);
    sent[0]?.reply();
    await turns();
    expect(requests.size).toBe(0);
  });

  it("take the first reply to a call that was asked for twice", async () => {
    const { sent, expireGuards, ends, ask } = makeIsolate();
    const asked = [ask("slow"), ask("b")];
    expireGuards();
    await turns();
    sent[1]?.reply();
    await turns();
    sent[0]?.fail(new Error("too late"));
    await Promise.all(asked);
    expect(ends.toSorted()).toEqual(["b: of b", "slow: of slow"]);
  });

  it("fail together, and the next are asked for anew", async () => {
    const { requests, sent, ends, ask } = makeIsolate();
    const asked = [ask("a"), ask("b"), ask("c")];
    sent[0]?.reply();
    await turns();
    sent[1]?.fail(new Error("unreachable"));
    await Promise.all(asked);
    expect(ends).toEqual(["a: of a", "b: Error: unreachable", "c: Error: unreachable"]);
    expect(requests.size).toBe(0);
    const next = ask("d");
    sent[2]?.reply();
    await next;
    expect(ends.at(-1)).toBe("d: of d");
  });

  it("are so many in one request that its size is bounded", async () => {
    const { sent, ask } = makeIsolate();
    const asked = Array.from({ length: PERMITS_PER_REQUEST_MAX + 2 }, (_, at) => ask(`call-${at}`));
    for (let at = 0; at < 3; at += 1) {
      sent[at]?.reply();
      await turns();
    }
    await Promise.all(asked);
    expect(sent.map((one) => one.asked.length)).toEqual([1, PERMITS_PER_REQUEST_MAX, 1]);
  });

  it("of another run wait for none of them", async () => {
    const { sent, ask } = makeIsolate();
    const asked = [ask("a"), ask("b", "other")];
    expect(sent.map((one) => one.asked)).toEqual([["a"], ["b"]]);
    for (const { reply } of sent) reply();
    await Promise.all(asked);
  });
});

describe("a call whose client's request ends while it asks", () => {
  it("is forgotten once so many newer runs have asked, if none of its own run does", async () => {
    const { requests, ask } = makeIsolate();
    // None of these requests is ever replied to.
    for (let at = 0; at < SHARING_RUNS_MAX; at += 1) void ask("alone", `run-${at}`);
    expect(requests.size).toBe(SHARING_RUNS_MAX);
    void ask("alone", "one more");
    expect(requests.size).toBe(SHARING_RUNS_MAX);
    await turns();
  });

  it("takes no reply from a call of a run that was forgotten while it waits", async () => {
    const { requests, sent, ends, ask } = makeIsolate();
    const early = ask("early", "first run");
    for (let at = 0; at < SHARING_RUNS_MAX; at += 1) void ask("alone", `run-${at}`);
    const late = ask("late", "first run");
    // Its run is known anew, so it asks by itself.
    expect(sent.at(-1)?.asked).toEqual(["late"]);
    sent[0]?.reply();
    await early;
    sent.at(-1)?.reply();
    await late;
    expect(ends).toEqual(["early: of early", "late: of late"]);
    expect(requests.size).toBe(SHARING_RUNS_MAX - 1);
  });
});

describe("an object that is far away", () => {
  /** There and back, ms: all else takes no time. The near one is the same at a tenth of the time. */
  const NEAR_MS = FAR_OBJECT_MS_MIN - 1;
  const FAR_MS = 10 * NEAR_MS;

  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  type Loop = { beginsAtMs: number; worksMs: number; calls: number };

  /** Clients in a loop: each asks, works for so long with what it got, and asks again, so often. */
  async function inLoops(rttMs: number, loops: readonly Loop[]) {
    const requests = new SharedRequests<string, string>();
    const waitedMs: number[] = [];
    const counts = { rpcs: 0, underWay: 0, mostUnderWay: 0 };
    const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    const deps: SharedRequestDeps<string, string> = {
      now: () => Date.now(),
      endedWithin: async (promise, ms) => await Promise.race([promise.then(() => true), wait(ms).then(() => false)]),
      send: async (asked) => {
        counts.rpcs += 1;
        counts.underWay += 1;
        counts.mostUnderWay = Math.max(counts.mostUnderWay, counts.underWay);
        await wait(rttMs);
        counts.underWay -= 1;
        return asked.map((call) => `of ${call}`);
      },
    };
    const client = async ({ beginsAtMs, worksMs, calls }: Loop, name: number): Promise<void> => {
      await wait(beginsAtMs);
      for (let at = 0; at < calls; at += 1) {
        const askedMs = Date.now();
        expect(await requests.replyTo("run", `${name}.${at}`, deps)).toBe(`of ${name}.${at}`);
        waitedMs.push(Date.now() - askedMs);
        await wait(worksMs);
      }
    };
    const ended = Promise.all(loops.map(client));
    await vi.runAllTimersAsync();
    await ended;
    return { ...counts, calls: waitedMs.length, waits: waitedMs.map((ms) => ms / rttMs) };
  }

  /** An object that replies when the test says so, by a clock that the test moves. */
  function makeClock() {
    const at = { ms: 0 };
    const sent: (() => void)[] = [];
    const guardsMs: number[] = [];
    const deps: SharedRequestDeps<string, string> = {
      now: () => at.ms,
      endedWithin: async (promise, ms) => {
        guardsMs.push(ms);
        return await promise.then(() => true);
      },
      send: (asked) => new Promise((resolve) => sent.push(() => resolve([...asked]))),
    };
    const requests = new SharedRequests<string, string>();
    /** A call that is asked for at once, and replied to after so long. */
    const asks = async (call: string, tookMs: number): Promise<void> => {
      const reply = requests.replyTo("run", call, deps);
      at.ms += tookMs;
      sent.at(-1)?.();
      await reply;
    };
    return { requests, sent, guardsMs, deps, at, asks };
  }

  const meanOf = (figures: readonly number[]): number => figures.reduce((sum, each) => sum + each, 0) / figures.length;

  /** Clients that begin one after another and work five to nine times as long as the way takes; the first knows the way already. */
  const program = (rttMs: number, clients: number): Loop[] => [
    { beginsAtMs: 0, worksMs: 0, calls: 1 },
    ...Array.from({ length: clients }, (_, at) => ({
      beginsAtMs: (rttMs * (10 + 2 * at)) / NEAR_MS,
      worksMs: (rttMs * (45 + 3 * (at % 12))) / NEAR_MS,
      calls: 12,
    })),
  ];

  it("is asked while a request is under way: a call waits a quarter of the way there and back for its own", async () => {
    for (const clients of [16, 48]) {
      const far = await inLoops(FAR_MS, program(FAR_MS, clients));
      const near = await inLoops(NEAR_MS, program(NEAR_MS, clients));
      expect([far.calls, far.mostUnderWay, near.mostUnderWay]).toEqual([12 * clients + 1, SHARED_REQUESTS_MAX, 1]);
      expect(meanOf(far.waits)).toBeLessThan(1.3);
      expect(Math.max(...far.waits)).toBeLessThan(1.51);
      // What a call waits beyond the way, against an object whose requests wait for one another, and what that costs in requests.
      expect(meanOf(far.waits) - 1).toBeLessThan(0.7 * (meanOf(near.waits) - 1));
      expect(far.rpcs / near.rpcs).toBeLessThan(SHARED_REQUESTS_MAX);
      expect(far.rpcs).toBeLessThan(far.calls);
    }
  });

  it("is asked once more for calls that come together, not once each", async () => {
    const together = Array.from({ length: 50 }, () => ({ beginsAtMs: 1_000, worksMs: 0, calls: 1 }));
    const { rpcs, waits } = await inLoops(FAR_MS, [{ beginsAtMs: 0, worksMs: 0, calls: 1 }, ...together]);
    expect(rpcs).toBe(3);
    expect(Math.max(...waits)).toBe(1 + 1 / SHARED_REQUESTS_MAX);
  });

  it("is near again after a fast reply, however slow it is while it is busy", async () => {
    const { requests, sent, deps, at, asks } = makeClock();
    await asks("first", FAR_MS);
    await asks("fast", NEAR_MS);
    await asks("slow", FAR_OBJECT_MS_MIN + 1);
    void requests.replyTo("run", "under way", deps);
    at.ms += FAR_MS;
    void requests.replyTo("run", "waits", deps);
    expect(sent.length).toBe(4);
  });

  it("makes a call wait no longer for a request that may have ended with its client", async () => {
    const { requests, guardsMs, deps, at, asks } = makeClock();
    await asks("very slow", 100 * PERMIT_GUARD_MS);
    void requests.replyTo("run", "gone", deps);
    at.ms += 1;
    void requests.replyTo("run", "waits", deps);
    expect(guardsMs).toEqual([PERMIT_GUARD_MS]);
  });
});
