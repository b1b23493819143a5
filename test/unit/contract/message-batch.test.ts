import { describe, expect, it } from "vitest";
import { inputLine, messageBatchReading, parseMessageBatchesQuery } from "../../../src/contract/message-batch.ts";
import { BATCH_LINE_BYTES_MAX, MESSAGE_BATCH_REQUESTS_MAX } from "../../../src/limits.ts";
import { atOnce } from "../../../src/text/bytes/slices.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const read = (body: string) => atOnce(messageBatchReading(encoder.encode(body)));
const list = (...requests: string[]) => read(`{"requests":[${requests.join(",")}]}`);

describe("the body of a message batch", () => {
  it("keeps the bytes of params, on one line", () => {
    const params = '{"model": "m",\n\t"x": 12345678901234567890,\r\n "text": "a\\nb"}';
    const batch = read(`{"service_tier":"default","requests":[ {"params":${params}, "custom_id":"a"} ]}`);
    if (!batch.ok) throw new Error("the body was refused");
    const [request] = batch.value.requests;
    expect([batch.value.requests.length, batch.value.isLive, request?.customId]).toEqual([1, true, "a"]);
    const line = request === undefined ? "" : decoder.decode(inputLine(request));
    expect(line).toBe(
      '{"custom_id":"a","method":"POST","url":"/v1/messages","body":{"model": "m", \t"x": 12345678901234567890,   "text": "a\\nb"}}\n',
    );
  });

  it("may have 100,000 requests, and not one more", { tags: ["slow"] }, () => {
    const requests = Array.from({ length: MESSAGE_BATCH_REQUESTS_MAX }, (_, at) => `{"custom_id":"${at}","params":{}}`);
    const batch = list(...requests);
    expect(batch.ok && batch.value.requests.length).toBe(100_000);
    expect(list(...requests, '{"custom_id":"x","params":{}}')).toMatchObject({
      ok: false,
      reason: { param: "requests" },
    });
  });

  it("may have a request as long as a line, and not a byte longer", () => {
    const long = (bytes: number) =>
      `{"custom_id":"a","params":${JSON.stringify({ x: "" }).replace('""', `"${"x".repeat(bytes - 8)}"`)}}`;
    expect(list(long(BATCH_LINE_BYTES_MAX - 256)).ok).toBe(true);
    expect(list(long(BATCH_LINE_BYTES_MAX - 255))).toMatchObject({
      ok: false,
      reason: { param: "requests[0].params" },
    });
  });

  it.each([
    ["", null],
    ["[]", "requests"],
    ['{"requests":{}}', "requests"],
    ['{"requests":[', null],
    ['{"requests":[{"custom_id":"a","params":{}},]}', "requests[1]"],
    ['{"requests":[{"custom_id":"a","params":{}},{"custom_id":"b","params":{"x":}}]}', "requests[1]"],
    ['{"requests":[1]}', "requests[0]"],
    ['{"requests":[{"custom_id":"a","custom_id":"b","params":{}}]}', "requests[0].custom_id"],
    ['{"requests":[{"custom_id":1,"params":{}}]}', "requests[0].custom_id"],
    ['{"requests":[{"params":{}}]}', "requests[0].custom_id"],
    ['{"requests":[{"custom_id":"a"}]}', "requests[0].params"],
    ['{"requests":[{"custom_id":"a","params":{}}],"service_tier":"flex"}', "service_tier"],
  ])("%s is refused for %s", (body, param) => {
    expect(read(body)).toMatchObject({ ok: false, reason: { reason: "invalid_request", param } });
  });
});

describe("the query of the list", () => {
  it("has 20 batches a page, and at most 100, whatever it asks for", () => {
    expect(parseMessageBatchesQuery({})).toEqual({ ok: true, value: { limit: 20, after: null, before: null } });
    expect(parseMessageBatchesQuery({ limit: "1000", after_id: "x" })).toMatchObject({
      value: { limit: 100, after: "x" },
    });
  });

  it.each([{ limit: "0" }, { limit: "1001" }, { limit: "x" }, { after_id: "a", before_id: "b" }])(
    "refuses %o",
    (query) => {
      expect(parseMessageBatchesQuery(query).ok).toBe(false);
    },
  );
});
