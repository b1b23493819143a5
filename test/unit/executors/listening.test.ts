/** Who listens for the leaving of a call's client: the call, and only until it has ended. */
import { expect, it } from "vitest";
import { executeCall, type Call } from "../../../src/executors/call.ts";
import { parseQuery } from "../../../src/contract/query.ts";
import { RunCaller } from "../../../src/objects/clients/caller.ts";
import type { AcquireReply } from "../../../src/objects/methods/calls.ts";
import { zeroAmounts } from "../../../src/run/money/ledger.ts";

const REFUSED: AcquireReply = {
  ok: false,
  reason: { reason: "cancelled", message: "by the test" },
  remainingNanoUsd: null,
};
const lease = { attemptId: "call-1", upstream: "up", model: "m", capTokens: null, timeoutMs: 1_000 };
const GRANTED: AcquireReply = {
  ok: true,
  lease,
  queuedMs: 0,
  reserved: zeroAmounts(),
  parallelGroupId: null,
  windowOpenedAtMs: null,
  remainingNanoUsd: null,
};

/** A client that stays, and those who listen for its leaving. */
function stayingClient() {
  const listening = new Set<() => void>();
  const signal = {
    aborted: false,
    addEventListener: (_type: "abort", listener: () => void) => void listening.add(listener),
    removeEventListener: (_type: "abort", listener: () => void) => void listening.delete(listener),
  };
  return { signal, listening };
}

function callUnder(reply: AcquireReply, signal: ReturnType<typeof stayingClient>["signal"]) {
  const object = { acquireMany: () => Promise.resolve([reply]) };
  const names = { idFromString: (name: string) => name, idFromName: (name: string) => name };
  const run = new RunCaller({ RUN: { ...names, get: () => object } } as never, "run_1");
  const config = { upstreams: [], routes: [], defaultModel: null, leasedCredit: false };
  const parsed = parseQuery({ prompt: "p" });
  if (!parsed.ok) throw new Error(parsed.reason.reason);
  const { facts } = parsed.value;
  const call: Call = { facts, deadlineMs: null, onLost: "fail", waitsForGate: true, mayUseCredit: false };
  return { call, deps: { run, config, signal, waitUntil: () => undefined } };
}

it("nobody listens once the call is refused", async () => {
  const { signal, listening } = stayingClient();
  const { call, deps } = callUnder(REFUSED, signal);
  const { end } = await executeCall(call, () => Promise.reject(new Error("it has no permit")), deps);
  expect(end.kind).toBe("refused");
  expect(listening.size).toBe(0);
});

it("nobody listens once the call has failed unexpectedly", async () => {
  const { signal, listening } = stayingClient();
  const { call, deps } = callUnder(GRANTED, signal);
  await expect(executeCall(call, () => Promise.reject(new Error("a bug")), deps)).rejects.toThrow("a bug");
  expect(listening.size).toBe(0);
});

it("the call listens while its answer is on its way, and stops its attempt if the client leaves; then nobody listens", async () => {
  const { signal, listening } = stayingClient();
  const { call, deps } = callUnder(GRANTED, signal);
  const ended = Promise.withResolvers<void>();
  const aborted: boolean[] = [];
  const { end } = await executeCall(
    call,
    ({ controller }) => {
      controller.signal.addEventListener("abort", () => aborted.push(true));
      return Promise.resolve({ kind: "answering" as const, ended: ended.promise });
    },
    deps,
  );
  expect(end.kind).toBe("answering");
  expect(listening.size).toBe(1);
  for (const listener of listening) listener();
  expect(aborted).toEqual([true]);
  ended.reject(new Error("its connection broke"));
  await expect.poll(() => listening.size).toBe(0);
});
