import type { PullRun } from "../../../src/objects/clients/pulled-fetch.ts";
import type { TextRun } from "../../../src/executors/contexts/send.ts";
import type { TapeRun } from "../../../src/executors/cassettes/taped-call.ts";
import { describe, expect, it } from "vitest";
import { attemptCall, attemptRelay } from "../../../src/executors/attempt.ts";
import { readRequest } from "../../../src/providers/formats/request/read.ts";
import type { Upstream } from "../../../src/providers/config/types.ts";
import { makeAnthropic, makeLease, makeUpstream, realTimer } from "../providers/make.ts";

/** No call here goes to pull workers. */
const NO_RUN: PullRun & TextRun & TapeRun = {
  callCassette: () => Promise.reject(new Error("no tape is looked at")),
  runId: "run_1",
  readText: () => Promise.reject(new Error("the run is not called")),
  callWithRetry: () => Promise.reject(new Error("the run is not called")),
  notify: () => Promise.reject(new Error("the run is not called")),
};

const simulated = makeUpstream({ name: "sim", kind: "simulated", baseUrl: "", apiKey: null });

function attemptOf(fields: Parameters<typeof makeLease>[0]) {
  return { lease: makeLease({ upstream: "sim", ...fields }), controller: new AbortController(), timer: realTimer };
}

function call(fields: Parameters<typeof makeLease>[0], upstreams: readonly Upstream[] = [simulated]) {
  return attemptCall(attemptOf(fields), { prompt: "hi" }, { upstreams, headersLimited: false, run: NO_RUN });
}

function relayed(fields: Parameters<typeof makeLease>[0], upstreams: readonly Upstream[] = [simulated]) {
  const bytes = new TextEncoder().encode('{"model":"sim/echo","messages":[{"role":"user","content":"hi"}]}');
  const facts = readRequest("chat", bytes);
  if (!facts.ok) throw new Error("refused");
  const request = { bytes, facts: facts.value, query: "", header: () => undefined };
  return attemptRelay(attemptOf(fields), request, { upstreams, run: NO_RUN });
}

describe("an attempt whose upstream is not configured any more", () => {
  const outcome = {
    kind: "failure",
    class: "rejected",
    reason: { reason: "misconfigured", variable: "UPSTREAMS" },
    latencyMs: 0,
  };

  it("fails at no cost, with the variable that was changed", async () => {
    expect(await call({ upstream: "gone" })).toMatchObject(outcome);
  });

  it("fails in the same way if its answer would be relayed", async () => {
    expect(await relayed({ upstream: "gone" })).toMatchObject({ kind: "failed", outcome, upstream: null });
  });
});

describe("an attempt that its upstream has no endpoint for", () => {
  it("fails at no cost, and names the upstream", async () => {
    const outcome = { class: "rejected", reason: { reason: "invalid_request", param: "model" } };
    const upstream = makeAnthropic();
    expect(await relayed({ upstream: "acme" }, [upstream])).toMatchObject({ kind: "failed", outcome, upstream });
  });
});

describe("an attempt at the simulated upstream", () => {
  it("is answered without the network", async () => {
    expect(await call({ model: "echo" })).toMatchObject({ kind: "success", text: "hi", usage: { promptTokens: 1 } });
  });

  it("is answered without the network if its answer is relayed", async () => {
    expect(await relayed({ model: "echo" })).toMatchObject({ kind: "answered", status: 200 });
  });

  it("passes on which attempt of its call it is", async () => {
    const model = "fail?times=1&status=503";
    expect(await call({ model, attempt: 1 })).toMatchObject({ class: "transient", reason: { status: 503 } });
    expect(await call({ model, attempt: 2 })).toMatchObject({ kind: "success" });
  });

  it("ends at its lease's time limit", async () => {
    const outcome = { class: "unknown", reason: { reason: "upstream_timeout", timeoutMs: 5 } };
    expect(await call({ model: "slow", timeoutMs: 5 })).toMatchObject(outcome);
    expect(await relayed({ model: "slow", timeoutMs: 5 })).toMatchObject({ kind: "failed", outcome });
  });

  it("is not sent if it was cancelled before", async () => {
    const attempt = attemptOf({ model: "echo" });
    attempt.controller.abort();
    const outcome = await attemptCall(
      attempt,
      { prompt: "hi" },
      { upstreams: [simulated], headersLimited: false, run: NO_RUN },
    );
    expect(outcome).toMatchObject({ class: "rejected", reason: { reason: "cancelled" } });
  });
});
