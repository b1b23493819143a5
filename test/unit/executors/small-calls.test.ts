/** Single calls for which the slices of large requests rest: short ones, as long as they are on their way. */
import { expect, it } from "vitest";
import { executeCall, type Call } from "../../../src/executors/call.ts";
import { parseQuery } from "../../../src/contract/query.ts";
import { SLICED_BODY_BYTES_MIN } from "../../../src/limits.ts";
import { RunCaller } from "../../../src/objects/clients/caller.ts";
import type { AcquireReply } from "../../../src/objects/methods/calls.ts";
import { smallRequests } from "../../../src/text/bytes/slices.ts";

const REFUSED: AcquireReply = {
  ok: false,
  reason: { reason: "cancelled", message: "by the test" },
  remainingNanoUsd: null,
};

function callOf(prompt: string): Call {
  const parsed = parseQuery({ prompt });
  if (!parsed.ok) throw new Error(parsed.reason.reason);
  return { facts: parsed.value.facts, deadlineMs: null, onLost: "fail", waitsForGate: true, mayUseCredit: false };
}

it.each([
  ["short", 1, true],
  ["long", SLICED_BODY_BYTES_MIN, false],
])("a %s call is on its way until it has ended", async (_, chars, isSmall) => {
  // A call of another test may have been lost a moment ago.
  await expect.poll(() => smallRequests.areUnderWay(Date.now())).toBe(false);
  const seen: boolean[] = [];
  // The run refuses the call, and looks at what is on its way meanwhile.
  const run = new RunCaller(
    {
      RUN: {
        idFromString: (name: string) => name,
        idFromName: (name: string) => name,
        get: () => ({
          acquireMany: () => {
            seen.push(smallRequests.areUnderWay(Date.now()));
            return Promise.resolve([REFUSED]);
          },
        }),
      },
    } as never,
    "run_1",
  );
  const config = { upstreams: [], routes: [], defaultModel: null, leasedCredit: false };
  const deps = { run, config, signal: new AbortController().signal, waitUntil: () => undefined };
  const attempt = () => Promise.reject(new Error("it has no permit"));
  const { end } = await executeCall(callOf("x".repeat(chars)), attempt, deps);
  expect([end.kind, seen]).toEqual(["refused", [isSmall]]);
  expect(smallRequests.areUnderWay(Date.now())).toBe(false);
});
