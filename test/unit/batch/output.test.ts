import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchRequestId, writeLine, type LineOutcome } from "../../../src/batch/output.ts";
import type { Reason } from "../../../src/errors.ts";

const LINE = { id: "batch_req_1_0", customId: "a" };

function parsed(outcome: LineOutcome, line = LINE) {
  const written = writeLine(line, outcome);
  expect(written.text.endsWith("\n")).toBe(true);
  const value: unknown = JSON.parse(written.text);
  return { file: written.file, counts: written.counts, value };
}

const completed = (body: string): LineOutcome => ({ kind: "completed", statusCode: 200, requestId: "req-1", body });
const failed = (reason: Reason, upstreamBody: string | null = null): LineOutcome => ({
  kind: "failed",
  reason,
  requestId: "req-1",
  upstreamBody,
});
const upstreamError = (status: number | null, message = "nope"): Reason => ({
  reason: "upstream_error",
  upstream: "acme",
  status,
  message,
  retryable: false,
});

describe("a line that the upstream answered", () => {
  it("goes to the output file with the body as it came", () => {
    const body = '{"id":"x", "big":12345678901234567890,\t"n":1.50,"é":"\\u00e9\\/"}';
    expect(writeLine(LINE, completed(body))).toEqual({
      file: "output",
      counts: "completed",
      text: `{"id":"batch_req_1_0","custom_id":"a","response":{"status_code":200,"request_id":"req-1","body":${body}},"error":null}\n`,
    });
  });

  it("is one line even if the body has several", () => {
    const { text } = writeLine(LINE, completed('{\r\n  "a": [\n 1,\r\n\r\n 2 ]\n}'));
    expect(text).toContain('"body":{   "a": [  1,  2 ] }}');
    expect(text.trimEnd()).not.toMatch(/[\r\n]/);
    expect(JSON.parse(text)).toMatchObject({ response: { body: { a: [1, 2] } } });
  });

  it("escapes the characters at which Python ends a line", () => {
    const { text } = writeLine({ id: "i", customId: "\u2028" }, completed('{"a\u2029":"\u0085\u2028"}'));
    expect(text).toContain('"custom_id":"\\u2028"');
    expect(text).toContain('{"a\\u2029":"\\u0085\\u2028"}');
  });
});

describe("a line that the upstream refused", () => {
  it("goes to the error file with its status and OpenAI's form of an error", () => {
    expect(parsed(failed(upstreamError(400, "bad temperature")))).toEqual({
      file: "error",
      counts: "failed",
      value: {
        id: "batch_req_1_0",
        custom_id: "a",
        response: {
          status_code: 400,
          request_id: "req-1",
          body: {
            error: { message: "bad temperature", type: "invalid_request_error", param: null, code: "upstream_error" },
          },
        },
        error: null,
      },
    });
  });

  it("keeps the upstream's own body if it has that form", () => {
    const body = '{"error":{"message":"m","type":"t","param":"p","code":"c","more":1.0}}';
    expect(writeLine(LINE, failed(upstreamError(422), body)).text).toContain(
      `"status_code":422,"request_id":"req-1","body":${body}`,
    );
  });

  it.each(["", "<html>", '{"error":{"mess', '{"message":"m"}', '{"error":"m"}', "[]"])(
    "is reported in the gateway's words if the upstream's body has another form: %j",
    (body) => {
      expect(parsed(failed(upstreamError(500), body)).value).toMatchObject({
        response: { status_code: 500, body: { error: { message: "nope", type: "server_error" } } },
      });
    },
  );

  it.each([401, 403, 200, 302])("does not show the upstream's body of a %i", (status) => {
    const body = '{"error":{"message":"key sk-1 is wrong"}}';
    expect(parsed(failed(upstreamError(status), body)).value).toMatchObject({
      response: { status_code: 502, body: { error: { message: "nope", code: "upstream_error" } } },
      error: null,
    });
  });

  it("is a 429 if it was rate limited to the last attempt", () => {
    const reason: Reason = {
      reason: "upstream_rate_limited",
      upstream: "acme",
      message: "slow down",
      retryAfterMs: null,
    };
    expect(parsed(failed(reason))).toMatchObject({
      file: "error",
      counts: "failed",
      value: {
        response: {
          status_code: 429,
          body: {
            error: { message: "slow down", type: "rate_limit_error", param: null, code: "upstream_rate_limited" },
          },
        },
        error: null,
      },
    });
  });
});

describe("a line without an upstream's answer", () => {
  const budget = { dimension: "usd" as const, limit: 1, spent: 1, reserved: 0, remaining: 0, needed: 0.1 };

  it.each<[Reason, string, string | null]>([
    [{ reason: "upstream_timeout", upstream: "acme", timeoutMs: 10 }, "request_timeout", "failed"],
    [{ reason: "budget_exhausted", ...budget }, "budget_exhausted", "failed"],
    [{ reason: "in_flight_budget_exhausted", ...budget }, "in_flight_budget_exhausted", "failed"],
    [{ reason: "upstream_truncated", upstream: "acme", message: "m" }, "upstream_truncated", "failed"],
    [upstreamError(null), "upstream_error", "failed"],
    [{ reason: "unpriced_model", model: "m" }, "unpriced_model", "failed"],
    [{ reason: "internal", message: "m" }, "internal", "failed"],
    [{ reason: "cancelled", message: "m" }, "batch_cancelled", null],
    [{ reason: "deadline_exceeded", deadlineMs: 1 }, "batch_expired", null],
  ])("has no response but a code: %j", (reason, code, counts) => {
    expect(parsed(failed(reason, '{"error":{}}'))).toEqual({
      file: "error",
      counts,
      value: {
        id: "batch_req_1_0",
        custom_id: "a",
        response: null,
        error: { code, message: expect.stringMatching(/./) },
      },
    });
  });

  it.each([
    ["cancelled", "batch_cancelled", "This request could not be executed before the batch was cancelled."],
    ["expired", "batch_expired", "This request could not be executed before the completion window expired."],
  ] as const)(
    "that never ran because the batch was %s counts as neither completed nor failed",
    (why, code, message) => {
      expect(parsed({ kind: "not_run", why })).toEqual({
        file: "error",
        counts: null,
        value: { id: "batch_req_1_0", custom_id: "a", response: null, error: { code, message } },
      });
    },
  );
});

describe("ids of lines", () => {
  it("are unique, and the same each time they are written", () => {
    expect(batchRequestId("batch_abc", 7)).toBe("batch_req_abc_7");
    expect(new Set(Array.from({ length: 100 }, (_, index) => batchRequestId("batch_abc", index))).size).toBe(100);
  });
});

/** What Python's `str.splitlines()` ends a line at. */
const LINE_ENDS = ["\n", "\r", "\v", "\f", "\u001c", "\u001d", "\u001e", "\u0085", "\u2028", "\u2029"];

/** Texts in which the characters that matter are common. */
const texts = fc.string({
  unit: fc.oneof(
    fc.constantFrom("\u2028", "\u2029", "\u0085", "\n", "\r", "\u001c", '"', "\\", "\ud800", "u", "𝄞"),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
});

const outcomes = fc.oneof(
  fc
    .tuple(fc.json({ stringUnit: "binary" }), fc.constantFrom(0, 2))
    .map(([json, indent]) => completed(JSON.stringify(JSON.parse(json), null, indent))),
  texts.map((text) => completed(`{"text":${JSON.stringify(text)}}`)),
  texts.map((message) => failed(upstreamError(400, message))),
  texts.map((message) => failed({ reason: "internal", message })),
  texts.map((text) => failed(upstreamError(400), `{\n"error":{"message":${JSON.stringify(text)}}}`)),
  fc.constant<LineOutcome>({ kind: "not_run", why: "expired" }),
);

describe("every written line", () => {
  it("is one line for every reader and parses to the same value", () => {
    fc.assert(
      fc.property(texts, outcomes, (customId, outcome) => {
        const { text } = writeLine({ id: "i", customId }, outcome);
        expect(LINE_ENDS.filter((end) => text.slice(0, -1).includes(end))).toEqual([]);
        const value: unknown = JSON.parse(text);
        expect(value).toMatchObject({ custom_id: customId });
        if (outcome.kind === "completed") {
          expect(value).toHaveProperty("response.body", JSON.parse(outcome.body));
        }
      }),
    );
  });

  it("each custom_id is in the two files exactly once", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(texts, outcomes), { selector: ([id]) => id, maxLength: 40 }), (lines) => {
        const files = { output: "", error: "" };
        const counts = { completed: 0, failed: 0, none: 0 };
        for (const [index, [customId, outcome]] of lines.entries()) {
          const written = writeLine({ id: batchRequestId("batch_x", index), customId }, outcome);
          files[written.file] += written.text;
          counts[written.counts ?? "none"] += 1;
        }
        const read = `${files.output}${files.error}`.split("\n").filter((line) => line !== "");
        const ids = read.map((line): unknown => Reflect.get(Object(JSON.parse(line)), "custom_id"));
        expect(ids.toSorted()).toEqual(lines.map(([id]) => id).toSorted());
        expect(counts.completed).toBe(files.output.split("\n").length - 1);
        expect(counts.completed + counts.failed + counts.none).toBe(lines.length);
      }),
    );
  });
});
