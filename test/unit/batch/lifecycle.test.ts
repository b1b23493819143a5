import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchDocument, noBatch } from "../../../src/batch/document.ts";
import {
  cancelBatch,
  endBatch,
  failBatch,
  finalizeBatch,
  isFinal,
  isPastWindow,
  newBatch,
  startBatch,
  type Batch,
  type BatchEnd,
  type BatchResult,
  type BatchStatus,
} from "../../../src/batch/lifecycle.ts";
import { EMPTY_FILE, noSuchFile, wrongPurpose } from "../../../src/batch/line-error.ts";
import { addUsage } from "../../../src/batch/usage.ts";
import { makeRequest } from "./make.ts";

const RESULT: BatchResult = {
  counts: { total: 3, completed: 2, failed: 1 },
  usage: null,
  outputFileId: "file-out",
  errorFileId: "file-err",
};
const ERRORS = [{ ...EMPTY_FILE, line: null }];

const fresh = () => newBatch("batch_1", makeRequest(), 100);
const started = () => startBatch(fresh(), { total: 3, model: "m" }, 110);
const finalizing = () => finalizeBatch(started(), 120);
const ended = (to: BatchEnd, from: Batch) => endBatch(from, to, { result: RESULT, nowS: 130 });

function cancelling(batch: Batch): Batch {
  const cancel = cancelBatch(batch, 125);
  if (!cancel.ok) throw new Error(cancel.refusal.error.message);
  return cancel.value;
}

/** A batch in each status. */
const IN: Readonly<Record<BatchStatus, () => Batch>> = {
  validating: fresh,
  failed: () => failBatch(fresh(), ERRORS, 105),
  in_progress: started,
  finalizing,
  completed: () => ended("completed", finalizing()),
  expired: () => ended("expired", started()),
  cancelling: () => cancelling(started()),
  cancelled: () => ended("cancelled", cancelling(started())),
};
const STATUSES = [
  "validating",
  "failed",
  "in_progress",
  "finalizing",
  "completed",
  "expired",
  "cancelling",
  "cancelled",
];

const MOVES: Readonly<Record<Exclude<BatchStatus, "validating">, (batch: Batch, nowS: number) => Batch>> = {
  failed: (batch, nowS) => failBatch(batch, ERRORS, nowS),
  in_progress: (batch, nowS) => startBatch(batch, { total: 3, model: "m" }, nowS),
  finalizing: finalizeBatch,
  completed: (batch, nowS) => endBatch(batch, "completed", { result: RESULT, nowS }),
  expired: (batch, nowS) => endBatch(batch, "expired", { result: RESULT, nowS }),
  cancelled: (batch, nowS) => endBatch(batch, "cancelled", { result: RESULT, nowS }),
  cancelling: (batch, nowS) => {
    const cancel = cancelBatch(batch, nowS);
    if (!cancel.ok) throw new Error(cancel.refusal.error.message);
    return cancel.value;
  },
};

describe("the batch object", () => {
  it("has every key from the start, null if it has no value", () => {
    expect(batchDocument(newBatch("batch_1", makeRequest({ metadata: { a: "b" } }), 100))).toEqual({
      id: "batch_1",
      object: "batch",
      endpoint: "/v1/chat/completions",
      model: null,
      errors: null,
      input_file_id: "file-in",
      completion_window: "24h",
      status: "validating",
      output_file_id: null,
      error_file_id: null,
      created_at: 100,
      in_progress_at: null,
      expires_at: 86_500,
      finalizing_at: null,
      completed_at: null,
      failed_at: null,
      expired_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      usage: null,
      metadata: { a: "b" },
    });
  });

  it.each(STATUSES)("has the same keys while it is %s", (status) => {
    const make = Object.entries(IN).find(([name]) => name === status)?.[1] ?? fresh;
    const document = batchDocument(make());
    expect(document.status).toBe(status);
    expect(Object.keys(document)).toEqual(Object.keys(batchDocument(fresh())));
    expect(Object.values(document)).not.toContain(undefined);
  });

  it("counts its requests as soon as they are known", () => {
    expect(batchDocument(started())).toMatchObject({
      status: "in_progress",
      in_progress_at: 110,
      model: "m",
      request_counts: { total: 3, completed: 0, failed: 0 },
    });
  });

  it("names its files once it has ended, and not before", () => {
    expect(batchDocument(finalizing())).toMatchObject({
      output_file_id: null,
      error_file_id: null,
      finalizing_at: 120,
    });
    expect(batchDocument(IN.completed())).toMatchObject({
      status: "completed",
      completed_at: 130,
      output_file_id: "file-out",
      error_file_id: "file-err",
      request_counts: RESULT.counts,
    });
  });

  it("is completed without an output file when all its lines failed", () => {
    const result = { ...RESULT, outputFileId: null };
    const document = batchDocument(endBatch(finalizing(), "completed", { result, nowS: 130 }));
    expect(document).toMatchObject({ status: "completed", output_file_id: null, error_file_id: "file-err" });
  });

  it("lists the errors of its file in a list object", () => {
    const errors = [{ ...noSuchFile("file-x"), line: null }];
    expect(batchDocument(failBatch(fresh(), errors, 105))).toMatchObject({
      status: "failed",
      failed_at: 105,
      errors: {
        object: "list",
        data: [
          {
            code: "invalid_request",
            param: "file_id",
            line: null,
            message: expect.stringMatching(/^Cannot find file file-x/),
          },
        ],
      },
    });
    expect(wrongPurpose("file-x", "evals")).toMatchObject({ code: "invalid_request", param: "file_id" });
  });

  it("has usage in the names of the Responses API", () => {
    const line = { promptTokens: 10, completionTokens: 5, cachedTokens: 4, reasoningTokens: 2 };
    const usage = addUsage(addUsage(null, line), line);
    expect(usage).toEqual({
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 8 },
      output_tokens: 10,
      output_tokens_details: { reasoning_tokens: 4 },
      total_tokens: 30,
    });
    const done = endBatch(finalizing(), "completed", { result: { ...RESULT, usage }, nowS: 130 });
    expect(batchDocument(done).usage).toEqual(usage);
  });

  it("is not found, with OpenAI's message", () => {
    expect(noBatch("batch_x")).toMatchObject({
      status: 404,
      error: { message: expect.stringMatching("No batch found") },
    });
  });
});

describe("the life of a batch", () => {
  const WAYS = {
    validating: ["failed", "in_progress", "cancelling"],
    in_progress: ["finalizing", "expired", "cancelling"],
    finalizing: ["completed", "expired", "cancelling"],
    cancelling: ["cancelled"],
    completed: [],
    failed: [],
    expired: [],
    cancelled: [],
  } satisfies Record<BatchStatus, string[]>;

  it.each(Object.entries(WAYS))("moves from %s to %j only", (status, next: readonly string[]) => {
    const make = Object.entries(IN).find(([name]) => name === status)?.[1] ?? fresh;
    const reached = Object.entries(MOVES).flatMap(([to, move]) => {
      if (to === status) return [];
      try {
        const moved = move(make(), 140);
        return moved.status === to ? [to] : [];
      } catch {
        return [];
      }
    });
    expect(reached.toSorted()).toEqual([...next].toSorted());
    expect(isFinal(make())).toBe(next.length === 0);
  });

  it("sets each timestamp once, also if transitions are retried", () => {
    const names = fc.constantFrom(...Object.keys(MOVES));
    fc.assert(
      fc.property(fc.array(names, { maxLength: 30 }), (tries) => {
        let batch = fresh();
        for (const [index, name] of tries.entries()) {
          const move = Object.entries(MOVES).find(([to]) => to === name)?.[1] ?? finalizeBatch;
          const before = batch;
          try {
            batch = move(before, 1_000 + index);
          } catch {
            continue;
          }
          for (const [status, atS] of Object.entries(before.times)) {
            if (atS !== null) expect(batch.times).toHaveProperty(status, atS);
          }
          const set = Object.values(batch.times).filter((atS) => atS !== null).length;
          const setBefore = Object.values(before.times).filter((atS) => atS !== null).length;
          expect(set - setBefore).toBe(batch.status === before.status ? 0 : 1);
          if (isFinal(before)) expect(batch).toEqual(before);
        }
      }),
    );
  });

  it("changes nothing when a transition is repeated", () => {
    expect(startBatch(started(), { total: 9, model: "x" }, 999)).toEqual(started());
    expect(ended("completed", IN.completed())).toEqual(IN.completed());
    expect(failBatch(IN.failed(), [], 999)).toEqual(IN.failed());
  });

  it("expires with the window, if it has begun and is not being cancelled", () => {
    const endsS = started().expiresAtS;
    expect(endsS).toBe(100 + 86_400);
    expect(isPastWindow(started(), endsS - 1)).toBe(false);
    const past = STATUSES.filter((status) => {
      const make = Object.entries(IN).find(([name]) => name === status)?.[1] ?? fresh;
      return isPastWindow(make(), endsS);
    });
    expect(past).toEqual(["in_progress", "finalizing"]);
  });
});

describe("cancelling", () => {
  it.each(["validating", "in_progress", "finalizing"] as const)("stops a batch that is %s", (status) => {
    expect(cancelBatch(IN[status](), 200)).toMatchObject({
      ok: true,
      value: { status: "cancelling", times: { cancelling: 200, cancelled: null } },
    });
  });

  it.each(["cancelling", "cancelled"] as const)("returns the batch unchanged when it is %s", (status) => {
    const batch = IN[status]();
    expect(cancelBatch(batch, 999)).toEqual({ ok: true, value: batch });
  });

  it.each(["completed", "failed", "expired"] as const)("is a conflict when the batch is %s", (status) => {
    expect(cancelBatch(IN[status](), 200)).toEqual({
      ok: false,
      refusal: {
        status: 409,
        error: {
          message: `Cannot cancel a batch with status '${status}'.`,
          type: "invalid_request_error",
          param: null,
          code: "conflict",
          retryable: false,
        },
      },
    });
  });

  it("keeps the lines that have run", () => {
    expect(batchDocument(IN.cancelled())).toMatchObject({
      status: "cancelled",
      cancelling_at: 125,
      cancelled_at: 130,
      output_file_id: "file-out",
      error_file_id: "file-err",
    });
  });
});
