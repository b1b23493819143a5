/** Uploads of bytes of unknown number into a simulated R2, in the Workers runtime. */
import { createHash } from "node:crypto";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { FormReader } from "../../src/files/multipart.ts";
import { boundaryOf } from "../../src/files/part-header.ts";
import { pageSource } from "../../src/files/r2-read.ts";
import { stageFile } from "../../src/files/r2-upload.ts";
import type { StagedFile, StageOptions } from "../../src/files/r2-upload.ts";
import type { ByteSource } from "../../src/files/source.ts";
import { FILE_PART_BYTES } from "../../src/limits.ts";
import type { Reason } from "../../src/errors.ts";
import { sourceOf } from "../support/forms.ts";
import { areEqual, contentOf, patternBytes, watchBucket } from "../support/watched-bucket.ts";
import { chainSources, streamSource } from "../../src/files/source.ts";

let keys = 0;
const newKey = () => `upload-${(keys += 1)}`;
const fault: Reason = { reason: "invalid_request", message: "not like this", param: null };

async function staged(bucket: R2Bucket, source: ByteSource, options: StageOptions): Promise<StagedFile> {
  const file = await stageFile(bucket, source, options);
  if (!file.ok) throw new Error(`refused: ${file.reason.reason}`);
  return file;
}

/** The upload is gone when R2 takes no part for it any more. */
async function expectNothingLeft(key: string, uploads: readonly R2MultipartUpload[]) {
  expect(await env.FILES.head(key)).toBeNull();
  for (const upload of uploads) {
    await expect(upload.uploadPart(1, new Uint8Array(1))).rejects.toThrow(/does not exist/);
  }
}

describe("an upload", () => {
  it("of 12 MB is sent in three parts, one at a time, from two buffers", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    const bytes = patternBytes(12_000_000);
    const options = { key, bytesMax: bytes.length, contentType: "application/jsonl", withMd5: true };
    const file = await staged(watched.bucket, sourceOf(bytes, [65_536, 1, 99_999]), options);
    expect(file).toMatchObject({ bytes: bytes.length });
    expect(file.md5).toBe(createHash("md5").update(bytes).digest("hex"));
    expect(await env.FILES.head(key)).toBeNull();
    await file.commit();
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
    expect((await env.FILES.head(key))?.httpMetadata?.contentType).toBe("application/jsonl");
    const calls = ["createMultipartUpload", "uploadPart 1", "uploadPart 2", "uploadPart 3", "complete"];
    expect(watched.calls).toEqual(calls);
    expect(watched.partsPeak).toBe(1);
    expect(watched.buffers.size).toBe(2);
  });

  it.each([
    ["nothing", 0, ["put"]],
    ["a byte", 1, ["put"]],
    ["one part", FILE_PART_BYTES, ["put"]],
    [
      "a byte more than a part",
      FILE_PART_BYTES + 1,
      ["createMultipartUpload", "uploadPart 1", "uploadPart 2", "complete"],
    ],
    ["two parts", 2 * FILE_PART_BYTES, ["createMultipartUpload", "uploadPart 1", "uploadPart 2", "complete"]],
  ])("of %s arrives whole", async (_, length, calls) => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    const bytes = patternBytes(length);
    const file = await staged(watched.bucket, sourceOf(bytes, [70_001]), { key, bytesMax: length });
    expect(file).toMatchObject({ bytes: length, md5: null });
    await file.commit();
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
    expect(watched.calls).toEqual(calls);
  });

  it("takes bytes from the runtime's own streams", async () => {
    const key = newKey();
    const bytes = patternBytes(FILE_PART_BYTES + 100_000);
    const body = new Request("http://gateway.test/", { method: "POST", body: bytes }).body;
    if (body === null) throw new Error("the request has a body");
    await (await staged(env.FILES, streamSource(body, "gone"), { key, bytesMax: bytes.length })).commit();
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("of more bytes than the limit is refused when it is reached, and leaves nothing", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    let sent = 0;
    const endless: ByteSource = {
      async read() {
        sent += 100_000;
        return { kind: "bytes", bytes: new Uint8Array(100_000) };
      },
    };
    const bytesMax = 2 * FILE_PART_BYTES;
    expect(await stageFile(watched.bucket, endless, { key, bytesMax, param: "data" })).toEqual({
      ok: false,
      reason: { reason: "payload_too_large", what: "the data", bytesMax, param: "data" },
    });
    expect(sent).toBeLessThanOrEqual(bytesMax + 100_000);
    expect(watched.calls).toContain("abort");
    await expectNothingLeft(key, watched.uploads);
  });

  it("whose source breaks passes its reason on and leaves nothing", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    const whole = sourceOf(patternBytes(FILE_PART_BYTES + 10));
    const broken: ByteSource = {
      async read() {
        const read = await whole.read();
        return read.kind === "end" ? { kind: "fault", reason: fault } : read;
      },
    };
    expect(await stageFile(watched.bucket, broken, { key, bytesMax: 1e9 })).toEqual({ ok: false, reason: fault });
    await expectNothingLeft(key, watched.uploads);
  });

  it("that is discarded leaves nothing", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    await (await staged(watched.bucket, sourceOf(patternBytes(6_000_000)), { key, bytesMax: 1e9 })).discard();
    await expectNothingLeft(key, watched.uploads);
    await (await staged(watched.bucket, sourceOf(patternBytes(10)), { key, bytesMax: 1e9 })).discard();
    await expectNothingLeft(key, watched.uploads);
  });

  it.each([1, 2, 3])("of which R2 loses part %i throws and leaves nothing", async (lost) => {
    const watched = watchBucket(env.FILES);
    watched.failing.add(lost);
    const key = newKey();
    const upload = async () => {
      const file = await staged(watched.bucket, sourceOf(patternBytes(12_000_000)), { key, bytesMax: 1e9 });
      await file.commit();
    };
    await expect(upload()).rejects.toThrow(`part ${lost} was lost`);
    await expectNothingLeft(key, watched.uploads);
  });
});

describe("a form's file", () => {
  /** What a route does with a form: the deciding field, the purpose, comes after the file. */
  async function upload(key: string, purpose: string, content: Uint8Array<ArrayBuffer>) {
    const form = new FormData();
    form.append("file", new File([content], "a.jsonl"));
    form.append("purpose", purpose);
    const request = new Request("http://gateway.test/", { method: "POST", body: form });
    const boundary = boundaryOf(request.headers.get("content-type"));
    if (!boundary.ok || request.body === null) throw new Error("the request has a form");
    const body = streamSource(request.body, "gone");
    const reader = new FormReader(body, { boundary: boundary.boundary, files: ["file"] });
    const part = await reader.next();
    if (part.kind !== "file") throw new Error("the form begins with its file");
    const file = await staged(env.FILES, part.body, { key, bytesMax: 1e9 });
    const isWanted = (await reader.next()).kind === "field" && purpose === "batch";
    await (isWanted ? file.commit() : file.discard());
    expect(await reader.next()).toEqual({ kind: "end" });
  }

  it("is stored or discarded depending on the fields after it", async () => {
    const bytes = patternBytes(FILE_PART_BYTES + 3);
    const wanted = newKey();
    await upload(wanted, "batch", bytes);
    expect(areEqual(await contentOf(env.FILES, wanted), bytes)).toBe(true);
    const unwanted = newKey();
    await upload(unwanted, "nonsense", bytes);
    expect(await env.FILES.head(unwanted)).toBeNull();
  });
});

describe("parts of an upload", () => {
  it("that are objects of any sizes become one object, with the MD5 of the whole", async () => {
    const bytes = patternBytes(7_000_003);
    const cuts = [0, 1, 6_000_000, 6_000_000, bytes.length];
    const pieces = cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
    const keys = pieces.map(() => newKey());
    await Promise.all(pieces.map((piece, index) => env.FILES.put(keys[index] ?? "", piece)));
    const source = chainSources(
      pieces.map((piece, index) => {
        const page = { key: keys[index] ?? "", sizeBytes: piece.length, offset: 0 };
        return () => pageSource(env.FILES, page);
      }),
    );
    const key = newKey();
    const file = await staged(env.FILES, source, { key, bytesMax: bytes.length, withMd5: true });
    await file.commit();
    expect(file).toMatchObject({ bytes: bytes.length, md5: createHash("md5").update(bytes).digest("hex") });
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });
});
