import { describe, expect, it } from "vitest";
import type { AcquireReply, AcquireRequest } from "../../../../src/objects/methods/calls.ts";
import { PermitRequests, type PermitRequestDeps } from "../../../../src/objects/clients/permit-requests.ts";
import { makeFacts } from "../../../support/engine.ts";

function requestOf(callId: string): AcquireRequest {
  const rules = { attempt: 1, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null } as const;
  return { callId, facts: makeFacts(), ...rules };
}

/** A refusal that names its call, so that replies can be told apart. */
function refusalOf(callId: string): AcquireReply {
  return { ok: false, reason: { reason: "internal", message: callId }, remainingNanoUsd: null };
}

type Sent = {
  callIds: string[];
  agesMs: (number | undefined)[];
  reply: () => void;
  fail: (error: Error) => void;
  retry: () => string[];
};

/** A run object that replies when the test says so, and a clock whose guards go off when the test says so. */
function makeIsolate() {
  const requests = new PermitRequests();
  const sent: Sent[] = [];
  const guards: (() => void)[] = [];
  const clock = { nowMs: 1_000 };
  const deps: PermitRequestDeps = {
    now: () => clock.nowMs,
    send: (live) => {
      const { promise, resolve, reject } = Promise.withResolvers<AcquireReply[]>();
      const asked = (): Pick<Sent, "callIds" | "agesMs"> => {
        const requests = live();
        return { callIds: requests.map(({ callId }) => callId), agesMs: requests.map(({ ageMs }) => ageMs) };
      };
      const one: Sent = {
        ...asked(),
        retry: () => Object.assign(one, asked()).callIds,
        reply: () => resolve(one.callIds.map(refusalOf)),
        fail: reject,
      };
      sent.push(one);
      return promise;
    },
    endedWithin: (promise) =>
      new Promise((resolve) => {
        guards.push(() => resolve(false));
        void promise.then(() => resolve(true));
      }),
  };
  const decisions: string[] = [];
  const ask = async (callId: string, signal = new AbortController().signal): Promise<void> => {
    const asked = { acceptedAtMs: clock.nowMs };
    try {
      const reply = await requests.decisionOn("run", { ...asked, request: requestOf(callId), signal }, deps);
      decisions.push(reply.ok === "wait" ? `${callId} waits` : callId);
    } catch (error) {
      decisions.push(`${callId}: ${String(error)}`);
    }
  };
  return { requests, sent, guards, decisions, ask, clock };
}

/** Lets all promises run. */
const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("requests for permits of one run", () => {
  it("share a call while another is under way", async () => {
    const { requests, sent, decisions, ask } = makeIsolate();
    const asked = [ask("a"), ask("b"), ask("c")];
    expect(sent.map(({ callIds }) => callIds)).toEqual([["a"]]);
    sent[0]?.reply();
    await turns();
    expect([decisions, sent[1]?.callIds]).toEqual([["a"], ["b", "c"]]);
    sent[1]?.reply();
    await Promise.all(asked);
    expect([decisions, sent.length, requests.size]).toEqual([["a", "b", "c"], 2, 0]);
  });

  it("say how old their calls are when they are sent, and sent anew: the wait for another's request counts", async () => {
    const { sent, ask, clock } = makeIsolate();
    const asked = [ask("a"), ask("b")];
    clock.nowMs += 30;
    asked.push(ask("c"));
    clock.nowMs += 40;
    sent[0]?.retry();
    sent[0]?.reply();
    await turns();
    expect(sent.map(({ agesMs }) => agesMs)).toEqual([[70], [70, 40]]);
    sent[1]?.reply();
    await Promise.all(asked);
  });

  it("are made by another call if the one that makes them is gone", async () => {
    const { sent, guards, decisions, ask } = makeIsolate();
    void ask("gone");
    const asked = [ask("b"), ask("c")];
    expect(sent.length).toBe(1);
    for (const expire of guards.splice(0)) expire();
    await turns();
    expect(sent.map(({ callIds }) => callIds)).toEqual([["gone"], ["b", "gone", "c"]]);
    sent[1]?.reply();
    await Promise.all(asked);
    expect(decisions).toEqual(["b", "c"]);
  });

  it("take the first decision on a call that was requested twice", async () => {
    const { sent, guards, decisions, ask } = makeIsolate();
    const asked = [ask("slow"), ask("b")];
    for (const expire of guards.splice(0)) expire();
    await turns();
    sent[1]?.reply();
    await turns();
    sent[0]?.fail(new Error("too late"));
    await Promise.all(asked);
    expect(decisions.toSorted()).toEqual(["b", "slow"]);
  });

  it("fail together, and the next are made anew", async () => {
    const { requests, sent, decisions, ask } = makeIsolate();
    const asked = [ask("a"), ask("b"), ask("c")];
    sent[0]?.reply();
    await turns();
    sent[1]?.fail(new Error("unreachable"));
    await Promise.all(asked);
    expect(decisions).toEqual(["a", "b: Error: unreachable", "c: Error: unreachable"]);
    expect(requests.size).toBe(0);
    const next = ask("d");
    sent[2]?.reply();
    await next;
    expect(decisions.at(-1)).toBe("d");
  });

  it("are not repeated for a client that has left", async () => {
    const { sent, decisions, ask } = makeIsolate();
    const leaver = new AbortController();
    const asked = [ask("a"), ask("leaver", leaver.signal), ask("c")];
    sent[0]?.reply();
    await turns();
    expect(sent[1]?.callIds).toEqual(["leaver", "c"]);
    leaver.abort();
    expect(sent[1]?.retry()).toEqual(["c"]);
    sent[1]?.reply();
    await Promise.all(asked);
    expect(decisions.toSorted()).toEqual(["a", "c", "leaver waits"]);
  });
});
