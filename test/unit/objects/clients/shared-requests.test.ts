/** Calls of one run that ask its object for the same: how many requests that takes, and that each of them gets its reply. */
import { describe, expect, it } from "vitest";
import { PERMITS_PER_REQUEST_MAX, SHARING_RUNS_MAX } from "../../../../src/limits.ts";
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
