import { describe, expect, it } from "vitest";
import { isMessageBatch, messageBatchDocument } from "../../../../src/batch/messages/document.ts";
import { cancelBatch, endBatch, newBatch, startBatch, type Batch } from "../../../../src/batch/lifecycle.ts";
import { makeRequest } from "../make.ts";

const NOW_S = 1_763_712_000;
const DAY_S = 86_400;
const fresh = newBatch("msgbatch_1", makeRequest({ url: "/v1/messages" }), NOW_S);
const started = startBatch(fresh, { total: 5, model: null }, NOW_S);
const shown = (batch: Batch, nowS = NOW_S) => messageBatchDocument(batch, { origin: "https://gateway.test", nowS });

const result = {
  counts: { total: 5, completed: 2, failed: 1 },
  usage: null,
  outputFileId: "file-1",
  errorFileId: null,
};
const over: Batch = { ...started, notRun: { cancelled: 1, expired: 1 } };

describe("the document of a message batch", () => {
  it("counts all requests as processing until the batch has ended", () => {
    const running = { ...started, counts: { total: 5, completed: 3, failed: 1 } };
    expect(shown(running)).toEqual({
      id: "msgbatch_1",
      type: "message_batch",
      processing_status: "in_progress",
      request_counts: { processing: 5, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      created_at: "2025-11-21T08:00:00.000Z",
      expires_at: "2025-11-22T08:00:00.000Z",
      ended_at: null,
      cancel_initiated_at: null,
      archived_at: null,
      results_url: null,
    });
  });

  it("that is being cancelled says since when, and has no results yet", () => {
    const cancelling = cancelBatch(started, NOW_S + 60);
    expect(cancelling.ok && shown(cancelling.value)).toMatchObject({
      processing_status: "canceling",
      cancel_initiated_at: "2025-11-21T08:01:00.000Z",
      request_counts: { processing: 5 },
      results_url: null,
    });
  });

  it("that has ended has counts by result and the address of the results", () => {
    const ended = endBatch(over, "expired", { result, nowS: NOW_S + DAY_S });
    expect(shown(ended, NOW_S + DAY_S)).toMatchObject({
      processing_status: "ended",
      request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 1, expired: 1 },
      ended_at: "2025-11-22T08:00:00.000Z",
      archived_at: null,
      results_url: "https://gateway.test/v1/messages/batches/msgbatch_1/results",
    });
  });

  it("is archived 29 days after its creation, and not before", () => {
    const ended = endBatch(over, "expired", { result, nowS: NOW_S + DAY_S });
    expect(shown(ended, NOW_S + 29 * DAY_S - 1).archived_at).toBeNull();
    expect(shown(ended, NOW_S + 29 * DAY_S)).toMatchObject({
      archived_at: "2025-12-20T08:00:00.000Z",
      results_url: null,
    });
  });

  it("is one of Anthropic's API only", () => {
    expect(isMessageBatch(fresh)).toBe(true);
    expect(isMessageBatch(newBatch("batch_1", makeRequest(), NOW_S))).toBe(false);
  });
});
