import { describe, expect, it } from "vitest";
import { writeResult } from "../../../../src/batch/messages/result.ts";
import type { LineOutcome } from "../../../../src/batch/output.ts";
import type { Reason } from "../../../../src/errors.ts";
import { SAMPLES } from "../../../support/reasons.ts";

const LINE = { id: "batch_req_1_0", customId: "r-1" };
const failed = (reason: Reason, upstreamBody: string | null = null): LineOutcome => ({
  kind: "failed",
  reason,
  requestId: "req_1",
  upstreamBody,
});
const upstream = (status: number | null): Reason => ({
  reason: "upstream_error",
  upstream: "up",
  status,
  message: "it failed",
  retryable: false,
});

function read(outcome: LineOutcome): { result: unknown; counts: string; file: string } {
  const { text, counts, file } = writeResult(LINE, outcome);
  expect(text.endsWith("\n")).toBe(true);
  const line = JSON.parse(text) as { custom_id: string; result: unknown };
  expect([line.custom_id, Object.keys(line)]).toEqual(["r-1", ["custom_id", "result"]]);
  return { result: line.result, counts, file };
}

describe("the result of a request", () => {
  it("that was answered is the answer, on one line", () => {
    const body = '{"type":"message",\n "content":[{"type":"text","text":"a\u2028b"}]}';
    const { text } = writeResult(LINE, { kind: "completed", statusCode: 200, requestId: "req_1", body });
    expect(text).toBe(
      '{"custom_id":"r-1","result":{"type":"succeeded","message":{"type":"message",  "content":[{"type":"text","text":"a\\u2028b"}]}}}\n',
    );
  });

  it.each([
    ["cancelled", { kind: "not_run", why: "cancelled" }, "canceled"],
    ["expired", { kind: "not_run", why: "expired" }, "expired"],
    ["cancelled", failed(SAMPLES.cancelled), "canceled"],
    ["expired", failed(SAMPLES.deadline_exceeded), "expired"],
  ] as const)("that did not run (%s) has Anthropic's word for it and no more", (counts, outcome, type) => {
    expect(read(outcome)).toEqual({ result: { type }, counts, file: "output" });
  });

  it("that the upstream refused is the upstream's own error", () => {
    const error = { type: "error", error: { type: "invalid_request_error", message: "no" }, request_id: "req_up" };
    expect(read(failed(upstream(400), JSON.stringify(error)))).toEqual({
      result: { type: "errored", error },
      counts: "failed",
      file: "output",
    });
  });

  it.each([
    ["an upstream of another protocol", upstream(529), '{"error":{"message":"busy"}}', "overloaded_error"],
    ["an upstream that answers no JSON", upstream(500), "<html>", "api_error"],
    [
      "words about the gateway's key",
      upstream(401),
      '{"type":"error","error":{"message":"sk-1"}}',
      "authentication_error",
    ],
    ["an upstream that did not answer", upstream(null), null, "api_error"],
    ["a rate limit", SAMPLES.upstream_rate_limited, null, "rate_limit_error"],
    ["a budget that is spent", SAMPLES.budget_exhausted, null, "invalid_request_error"],
  ])("of %s has the gateway's words and Anthropic's type", (_, reason, body, type) => {
    const { result } = read(failed(reason, body));
    expect(result).toMatchObject({ type: "errored", error: { type: "error", error: { type }, request_id: "req_1" } });
    expect(JSON.stringify(result)).not.toContain("sk-1");
  });
});
