import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fileDocument } from "../../../src/batch/files.ts";
import type { Checked } from "../../../src/batch/refusal.ts";
import {
  assembly,
  cancelUpload,
  completeUpload,
  md5Refusal,
  newUpload,
  noUpload,
  parseUploadComplete,
  parseUploadCreate,
  partDocument,
  partRefusal,
  uploadDocument,
  uploadStatus,
  type Upload,
} from "../../../src/batch/uploads.ts";
import {
  BATCH_FILE_BYTES_MAX,
  UPLOAD_BYTES_MAX,
  UPLOAD_EXPIRES_S,
  UPLOAD_PART_BYTES_MAX,
  UPLOAD_PARTS_MAX,
} from "../../../src/limits.ts";

const BODY = { filename: "x.jsonl", purpose: "batch", bytes: 30, mime_type: "text/jsonl" };
const NOW_S = 1_000;
const EXPIRES_S = NOW_S + UPLOAD_EXPIRES_S;

function valueOf<T>(checked: Checked<T>): T {
  if (!checked.ok) throw new Error(checked.refusal.error.message);
  return checked.value;
}

function errorOf(checked: Checked<unknown>) {
  return checked.ok ? null : { status: checked.refusal.status, ...checked.refusal.error };
}

const pending = () => newUpload("upload_1", valueOf(parseUploadCreate(BODY)), NOW_S);
const completed = () => completeUpload(pending(), "file-1");
const cancelled = () => valueOf(cancelUpload(pending(), NOW_S));

describe("a request for an upload", () => {
  it("describes the file", () => {
    expect(valueOf(parseUploadCreate(BODY))).toEqual({
      filename: "x.jsonl",
      purpose: "batch",
      bytes: 30,
      mimeType: "text/jsonl",
      expiresAfterS: null,
    });
    const expires_after = { anchor: "created_at", seconds: 3_600 };
    expect(valueOf(parseUploadCreate({ ...BODY, expires_after })).expiresAfterS).toBe(3_600);
  });

  it.each(["filename", "purpose", "bytes", "mime_type"])("requires %s", (field) => {
    expect(errorOf(parseUploadCreate({ ...BODY, [field]: undefined }))).toMatchObject({
      status: 400,
      param: field,
      code: "missing_required_parameter",
    });
  });

  it.each([
    [{ purpose: "batch_output" }, "purpose", "invalid_value"],
    [{ bytes: "30" }, "bytes", "invalid_type"],
    [{ bytes: 0 }, "bytes", "integer_below_min_value"],
    [{ bytes: UPLOAD_BYTES_MAX + 1, purpose: "user_data" }, "bytes", "integer_above_max_value"],
    [{ expires_after: { anchor: "created_at", seconds: 1 } }, "expires_after.seconds", "integer_below_min_value"],
    [{ chunk: 1 }, "chunk", "unknown_parameter"],
    [{ bytes: BATCH_FILE_BYTES_MAX + 1 }, null, "invalid_request"],
  ])("is refused for %j", (fields, param, code) => {
    expect(errorOf(parseUploadCreate({ ...BODY, ...fields }))).toMatchObject({ status: 400, param, code });
  });

  it("is bounded by the size of a batch's file, else by OpenAI's limit", () => {
    expect(parseUploadCreate({ ...BODY, bytes: BATCH_FILE_BYTES_MAX }).ok).toBe(true);
    expect(parseUploadCreate({ ...BODY, bytes: UPLOAD_BYTES_MAX, purpose: "user_data" }).ok).toBe(true);
  });
});

describe("the document of an upload", () => {
  it("is pending and has no file", () => {
    expect(uploadDocument(pending(), { file: null, nowS: NOW_S })).toEqual({
      id: "upload_1",
      object: "upload",
      bytes: 30,
      created_at: NOW_S,
      expires_at: EXPIRES_S,
      filename: "x.jsonl",
      purpose: "batch",
      status: "pending",
      file: null,
    });
  });

  it("includes its file once completed", () => {
    const file = fileDocument({
      id: "file-1",
      bytes: 30,
      createdAtS: NOW_S,
      expiresAtS: null,
      filename: "x.jsonl",
      purpose: "batch",
    });
    expect(uploadDocument(completed(), { file, nowS: EXPIRES_S })).toMatchObject({ status: "completed", file });
  });

  it("expires after an hour unless it has ended", () => {
    expect(uploadStatus(pending(), EXPIRES_S - 1)).toBe("pending");
    expect(uploadStatus(pending(), EXPIRES_S)).toBe("expired");
    expect(uploadStatus(completed(), EXPIRES_S)).toBe("completed");
    expect(uploadStatus(cancelled(), EXPIRES_S)).toBe("cancelled");
  });

  it("has documents for its parts, and is not found with the message of files", () => {
    expect(partDocument({ id: "part_1", uploadId: "upload_1", createdAtS: NOW_S })).toEqual({
      id: "part_1",
      object: "upload.part",
      created_at: NOW_S,
      upload_id: "upload_1",
    });
    expect(noUpload("upload_x").status).toBe(404);
  });
});

describe("a part", () => {
  const refusal = (upload: Upload, fields: { bytes?: number; parts?: number; nowS?: number } = {}) =>
    partRefusal(upload, { bytes: 1, parts: 0, nowS: NOW_S, ...fields });

  it("is accepted by a pending upload, up to 64 MB", () => {
    expect(refusal(pending(), { bytes: UPLOAD_PART_BYTES_MAX })).toBeNull();
    expect(refusal(pending(), { bytes: UPLOAD_PART_BYTES_MAX + 1 })).toMatchObject({ error: { param: "data" } });
  });

  it("is refused above the number of parts", () => {
    expect(refusal(pending(), { parts: UPLOAD_PARTS_MAX - 1 })).toBeNull();
    expect(refusal(pending(), { parts: UPLOAD_PARTS_MAX })).toMatchObject({ status: 400 });
  });

  it("is refused by an upload that has ended", () => {
    expect(refusal(completed())?.error.message).toBe("Cannot add a part to an upload with status 'completed'.");
    expect(refusal(cancelled())?.error.message).toBe("Cannot add a part to an upload with status 'cancelled'.");
    expect(refusal(pending(), { nowS: EXPIRES_S })?.error.message).toBe(
      "Cannot add a part to an upload with status 'expired'.",
    );
  });
});

describe("completing an upload", () => {
  const PARTS = new Map([
    ["part_a", 10],
    ["part_b", 20],
    ["part_c", 20],
  ]);
  const complete = (partIds: readonly string[], upload = pending(), nowS = NOW_S) =>
    assembly(upload, { partIds, md5: null }, { partBytes: PARTS, nowS });

  it("joins the named parts, in that order", () => {
    expect(complete(["part_b", "part_a"])).toEqual({ ok: true, value: ["part_b", "part_a"] });
    expect(complete(["part_a", "part_c"])).toEqual({ ok: true, value: ["part_a", "part_c"] });
  });

  it.each([
    [["part_a"], "10 bytes in total"],
    [["part_a", "part_b", "part_c"], "50 bytes in total"],
    [[], "0 bytes in total"],
    [["part_a", "part_x"], "no part 'part_x'"],
    [["part_a", "part_a"], "more than once"],
  ])("is refused for the parts %j", (partIds, text) => {
    expect(errorOf(complete(partIds))).toMatchObject({
      status: 400,
      param: "part_ids",
      message: expect.stringContaining(text),
    });
  });

  it("can be repeated once completed, and is refused if it ended otherwise", () => {
    expect(complete(["part_a"], completed())).toEqual({ ok: true, value: null });
    expect(errorOf(complete(["part_a", "part_b"], cancelled()))).toMatchObject({
      message: "Cannot complete an upload with status 'cancelled'.",
    });
    expect(errorOf(complete(["part_a", "part_b"], pending(), EXPIRES_S))).toMatchObject({
      message: "Cannot complete an upload with status 'expired'.",
    });
  });

  it("accepts a selection of parts only if it has the upload's number of bytes", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 6 });
    fc.assert(
      fc.property(sizes, fc.infiniteStream(fc.boolean()), (list, picks) => {
        const partBytes = new Map(list.map((size, index) => [`part_${index}`, size]));
        const partIds = [...partBytes.keys()].filter(() => picks.next().value === true).toReversed();
        const total = partIds.reduce((sum, id) => sum + (partBytes.get(id) ?? 0), 0);
        const checked = assembly(pending(), { partIds, md5: null }, { partBytes, nowS: NOW_S });
        expect(checked.ok).toBe(total === BODY.bytes);
      }),
    );
  });

  it("compares a digest, in either case", () => {
    const asked = valueOf(parseUploadComplete({ part_ids: ["part_a"], md5: "AB12" }));
    expect(asked).toEqual({ partIds: ["part_a"], md5: "ab12" });
    expect(md5Refusal(asked, "AB12")).toBeNull();
    expect(md5Refusal(asked, "ab13")).toMatchObject({ status: 400, error: { param: "md5" } });
    expect(md5Refusal({ ...asked, md5: null }, "ab13")).toBeNull();
  });

  it.each([
    [{}, "part_ids", "missing_required_parameter"],
    [{ part_ids: "part_a" }, "part_ids", "invalid_type"],
    [{ part_ids: [7] }, "part_ids.0", "invalid_type"],
    [{ part_ids: [], md5: 7 }, "md5", "invalid_type"],
  ])("is refused for the body %j", (body, param, code) => {
    expect(errorOf(parseUploadComplete(body))).toMatchObject({ param, code });
  });
});

describe("cancelling an upload", () => {
  it("ends a pending upload, and can be repeated", () => {
    expect(cancelled().status).toBe("cancelled");
    expect(valueOf(cancelUpload(cancelled(), NOW_S))).toEqual(cancelled());
  });

  it("is refused for a completed or expired upload", () => {
    expect(errorOf(cancelUpload(completed(), NOW_S))).toMatchObject({
      status: 400,
      message: "Cannot cancel an upload with status 'completed'.",
    });
    expect(errorOf(cancelUpload(pending(), EXPIRES_S))).toMatchObject({
      message: "Cannot cancel an upload with status 'expired'.",
    });
  });
});
