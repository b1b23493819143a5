import { describe, expect, it } from "vitest";
import { RESPONSE_BYTES_MAX } from "../../../../src/limits.ts";
import { KEY, makeUpstream } from "../make.ts";
import { Attempt, chat, failedOf, makeJob, requestOf, Source } from "./make.ts";

const refusal = (status: number, body: string, headers: Record<string, string> = {}) =>
  new Attempt(() => new Response(body, { status, headers }));

const ERROR = '{"error":{"message":"no","type":"t","param":null,"code":"c","x":1.0}}';

describe("what an attempt sends", () => {
  it("is one POST of the client's own bytes that follows no redirect and can be aborted", async () => {
    const attempt = new Attempt(() => new Response(chat()));
    const job = makeJob({ request: requestOf('{ "model":"gpt-x","seed":12345678901234567890 }') });
    await attempt.run(job);
    const { url, headers, body } = job.request;
    expect(attempt.asked).toHaveLength(1);
    expect(attempt.asked[0]).toMatchObject({ url, init: { method: "POST", redirect: "manual", headers } });
    expect(attempt.asked[0]?.init.body).toBe(body);
    expect(attempt.asked[0]?.init.signal).toBe(attempt.controller.signal);
  });

  it("has its lease's time from its dispatch", async () => {
    const attempt = refusal(500, "");
    await attempt.run(makeJob());
    expect(attempt.timer).toMatchObject({ ms: 60_000, stopped: true });
  });
});

describe("an answer that is no success", () => {
  it.each([
    [400, "rejected", "upstream_error"],
    [401, "rejected", "upstream_error"],
    [403, "rejected", "upstream_error"],
    [404, "rejected", "upstream_error"],
    [408, "unknown", "upstream_error"],
    [409, "transient", "upstream_error"],
    [413, "rejected", "upstream_error"],
    [422, "rejected", "upstream_error"],
    [429, "rate_limited", "upstream_rate_limited"],
    [500, "transient", "upstream_error"],
    [503, "transient", "upstream_error"],
    [529, "transient", "upstream_error"],
  ])("of status %i is %s, with its body as it came", async (status, failureClass, reason) => {
    const attempt = refusal(status, ERROR, { "x-ratelimit-limit-requests": "60" });
    const { outcome, answer } = failedOf(await attempt.run());
    expect(outcome).toMatchObject({ kind: "failure", class: failureClass, reason: { reason } });
    expect(answer).toMatchObject({ status, text: ERROR });
    expect(answer?.headers["x-ratelimit-limit-requests"]).toBe("60");
    expect(attempt.timer?.stopped).toBe(true);
  });

  it("tells how long to wait, in milliseconds before seconds", async () => {
    const wait = async (headers: Record<string, string>) => failedOf(await refusal(429, ERROR, headers).run()).outcome;
    expect(await wait({ "retry-after": "2" })).toMatchObject({ retryAfterMs: 2_000 });
    expect(await wait({ "retry-after": "2", "retry-after-ms": "150" })).toMatchObject({ retryAfterMs: 150 });
    expect(await wait({})).toMatchObject({ retryAfterMs: null });
  });

  it("counts its latency to the end of its body", async () => {
    const attempt = new Attempt(() => {
      attempt.nowMs += 40;
      return new Response(new Source((at) => ((attempt.nowMs += 30), at === 0 ? ERROR : null)).stream, { status: 500 });
    });
    expect(failedOf(await attempt.run()).outcome.latencyMs).toBe(100);
  });

  it("that is a redirect is not followed and not billed", async () => {
    const attempt = new Attempt(() => new Response(null, { status: 307, headers: { location: "https://evil.test" } }));
    const { outcome, answer } = failedOf(await attempt.run());
    expect(outcome).toMatchObject({ class: "rejected", reason: { reason: "upstream_error", retryable: false } });
    expect(answer).toMatchObject({ status: 307, text: "" });
    expect(attempt.asked).toHaveLength(1);
  });

  it("whose body breaks off is known by its status", async () => {
    const source = new Source((at) => (at === 0 ? '{"error":' : (source.break(), "")));
    const { outcome, answer } = failedOf(await new Attempt(() => new Response(source.stream, { status: 503 })).run());
    expect(outcome).toMatchObject({ class: "transient", reason: { status: 503 } });
    expect(answer).toMatchObject({ status: 503, text: "" });
  });

  it("whose body is too large is read no further", async () => {
    const source = new Source(() => "x".repeat(1024 * 1024));
    const { outcome, answer } = failedOf(await new Attempt(() => new Response(source.stream, { status: 500 })).run());
    expect(outcome).toMatchObject({ class: "transient" });
    expect(answer).toMatchObject({ text: "" });
    expect(source.cancelled).toBe(true);
    expect(source.pulled).toBeLessThanOrEqual(RESPONSE_BYTES_MAX / 1024 / 1024 + 2);
  });

  it("has no key of the upstream in its reason", async () => {
    const body = JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}` } });
    const { outcome } = failedOf(await refusal(401, body).run(makeJob({ upstream: makeUpstream({ apiKey: KEY }) })));
    expect(JSON.stringify(outcome)).not.toContain(KEY);
    expect(outcome).toMatchObject({ reason: { status: 401 } });
  });
});

describe("an attempt without an answer", () => {
  it("that reached nobody costs nothing", async () => {
    const attempt = new Attempt(() => {
      throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    });
    const { outcome, answer } = failedOf(await attempt.run());
    expect(outcome).toMatchObject({ class: "transient", reason: { reason: "upstream_error", status: null } });
    expect(answer).toBeNull();
    expect(attempt.timer?.stopped).toBe(true);
  });

  it("whose connection broke for no known reason may have been billed", async () => {
    const attempt = new Attempt(() => {
      throw new Error("Network connection lost.");
    });
    expect(failedOf(await attempt.run()).outcome).toMatchObject({ class: "unknown", reason: { retryable: true } });
  });

  /** A fetch that ends only when it is aborted. */
  const silent = () =>
    new Attempt(
      ({ init: { signal } }) =>
        new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
    );

  it("in its time is aborted and may have been billed", async () => {
    const attempt = silent();
    const passed = attempt.run();
    attempt.nowMs += 60_000;
    attempt.timeOut();
    expect(failedOf(await passed).outcome).toEqual({
      kind: "failure",
      class: "unknown",
      reason: { reason: "upstream_timeout", upstream: "acme", timeoutMs: 60_000 },
      answered: false,
      retryAfterMs: null,
      latencyMs: 60_000,
    });
    expect(attempt.controller.signal.aborted).toBe(true);
  });

  it("whose client left before it was sent is not sent, and costs nothing", async () => {
    const attempt = silent();
    attempt.controller.abort();
    expect(failedOf(await attempt.run())).toMatchObject({
      outcome: { class: "rejected", reason: { reason: "cancelled" } },
      answer: null,
    });
    expect([attempt.asked, attempt.timer]).toEqual([[], null]);
  });

  it("before its client left may have been billed", async () => {
    const attempt = silent();
    const passed = attempt.run();
    attempt.controller.abort();
    expect(failedOf(await passed)).toMatchObject({
      outcome: { class: "unknown", reason: { reason: "cancelled" } },
      answer: null,
    });
    expect(attempt.timer?.stopped).toBe(true);
  });
});
