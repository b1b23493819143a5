import { describe, expect, it } from "vitest";
import type { AcquireReply, AcquireRequest } from "../../../../src/objects/methods/calls.ts";
import { decisionsOn, type PermitRequest } from "../../../../src/objects/clients/permit-requests.ts";
import { makeFacts } from "../../../support/engine.ts";

function callOf(callId: string, acceptedAtMs = 1_000, signal = new AbortController().signal): PermitRequest {
  const rules = { attempt: 1, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null } as const;
  return { request: { callId, facts: makeFacts(), ...rules }, acceptedAtMs, signal };
}

/** A refusal that names its call, so that replies can be told apart. */
function refusalOf({ callId }: AcquireRequest): AcquireReply {
  return { ok: false, reason: { reason: "internal", message: callId }, remainingNanoUsd: null };
}

const shown = (reply: AcquireReply): string =>
  reply.ok === false && "message" in reply.reason ? reply.reason.message : String(reply.ok);

describe("requests for permits", () => {
  it("say how old their calls are when they are sent, and sent anew: the wait for another's request counts", async () => {
    const clock = { nowMs: 1_070 };
    const ages: (number | undefined)[][] = [];
    await decisionsOn(
      [callOf("a", 1_000), callOf("b", 1_030)],
      () => clock.nowMs,
      (live) => {
        const sendAt = (nowMs: number): AcquireRequest[] => {
          clock.nowMs = nowMs;
          const requests = live();
          ages.push(requests.map(({ ageMs }) => ageMs));
          expect(requests.map(({ sentAtMs }) => sentAtMs)).toEqual([nowMs, nowMs]);
          return requests;
        };
        sendAt(1_070);
        return Promise.resolve(sendAt(1_100).map(refusalOf));
      },
    );
    expect(ages).toEqual([
      [70, 40],
      [100, 70],
    ]);
  });

  it("are not repeated for a client that has left: its call is queued nowhere, and the others get their own replies", async () => {
    const leaver = new AbortController();
    const sent: string[][] = [];
    const replies = await decisionsOn(
      [callOf("a"), callOf("leaver", 1_000, leaver.signal), callOf("c")],
      () => 2_000,
      (live) => {
        sent.push(live().map(({ callId }) => callId));
        leaver.abort();
        const again = live();
        sent.push(again.map(({ callId }) => callId));
        return Promise.resolve(again.map(refusalOf));
      },
    );
    expect(sent).toEqual([
      ["a", "leaver", "c"],
      ["a", "c"],
    ]);
    expect(replies.map(shown)).toEqual(["a", "wait", "c"]);
  });
});
