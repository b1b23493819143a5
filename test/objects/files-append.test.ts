/** Objects that are appended to across restarts, in a simulated R2 in the Workers runtime. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { AppendedObject, NOTHING_APPENDED } from "../../src/files/r2-append.ts";
import type { AppendState } from "../../src/files/r2-append.ts";
import { FILE_PART_BYTES } from "../../src/limits.ts";
import { areEqual, contentOf, patternBytes, watchBucket } from "../support/watched-bucket.ts";

let keys = 0;
const newKey = () => `appended-${(keys += 1)}`;
const PIECE_BYTES = 700_001;

function* pieces(bytes: Uint8Array, from: number): Generator<{ at: number; piece: Uint8Array }> {
  for (let at = from; at < bytes.length; at += PIECE_BYTES) yield { at, piece: bytes.subarray(at, at + PIECE_BYTES) };
}

/** A state as it comes back from storage. */
const stored = (state: AppendState): AppendState => JSON.parse(JSON.stringify(state));

describe("an appended object", () => {
  it("smaller than a part is one put, made once", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    const object = new AppendedObject(watched.bucket, { key, contentType: "application/jsonl" });
    expect(await object.append(patternBytes(100))).toBeNull();
    expect(await env.FILES.head(key)).toBeNull();
    expect(await object.complete()).toBe(100);
    expect(watched.calls).toEqual(["put"]);
    expect(areEqual(await contentOf(env.FILES, key), patternBytes(100))).toBe(true);
    expect((await env.FILES.head(key))?.httpMetadata?.contentType).toBe("application/jsonl");
  });

  it("may be empty", async () => {
    const key = newKey();
    expect(await new AppendedObject(env.FILES, { key }).complete()).toBe(0);
    expect((await env.FILES.head(key))?.size).toBe(0);
  });

  it("of exactly two parts consists of these parts alone", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    const bytes = patternBytes(2 * FILE_PART_BYTES);
    const object = new AppendedObject(watched.bucket, { key });
    expect(await object.append(bytes)).toMatchObject({
      bytes: bytes.length,
      parts: [{ partNumber: 1 }, { partNumber: 2 }],
    });
    expect(await object.complete()).toBe(bytes.length);
    expect(watched.calls).toEqual(["createMultipartUpload", "uploadPart 1", "uploadPart 2", "complete"]);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("is the same after a restart behind every part, from bytes that begin before what is stored", async () => {
    const key = newKey();
    const bytes = patternBytes(3 * FILE_PART_BYTES + 1_234_567);
    let state = NOTHING_APPENDED;
    let restarts = 0;
    for (let isWhole = false; !isWhole; restarts += 1) {
      // The writer keeps whole pieces, and the first of them is stored in part.
      const fromByte = Math.floor(state.bytes / PIECE_BYTES) * PIECE_BYTES;
      const object = new AppendedObject(env.FILES, { key, state: stored(state), fromByte });
      isWhole = true;
      for (const { piece } of pieces(bytes, fromByte)) {
        const moved = await object.append(piece);
        if (moved === null) continue;
        state = moved;
        isWhole = false;
        break;
      }
      if (isWhole) expect(await object.complete()).toBe(bytes.length);
    }
    expect(restarts).toBe(4);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("is the same when a restart loses the state of a part that is stored", async () => {
    const key = newKey();
    const bytes = patternBytes(2 * FILE_PART_BYTES + 10);
    const first = new AppendedObject(env.FILES, { key });
    const one = await first.append(bytes.subarray(0, FILE_PART_BYTES));
    if (one === null) throw new Error("a part is stored");
    expect(await first.append(bytes.subarray(FILE_PART_BYTES))).toMatchObject({ bytes: 2 * FILE_PART_BYTES });
    const second = new AppendedObject(env.FILES, { key, state: stored(one) });
    await second.append(bytes.subarray(one.bytes));
    expect(await second.complete()).toBe(bytes.length);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it.each([
    ["small", 100],
    ["large", FILE_PART_BYTES + 100],
  ])("that is %s can be completed once more after a restart that lost the reply", async (_, length) => {
    const key = newKey();
    const bytes = patternBytes(length);
    const object = new AppendedObject(env.FILES, { key });
    const state = (await object.append(bytes)) ?? NOTHING_APPENDED;
    expect(await object.complete()).toBe(length);
    const again = new AppendedObject(env.FILES, { key, state: stored(state), fromByte: 0 });
    await again.append(bytes);
    expect(await again.complete()).toBe(length);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("is complete although R2 fails to say so", async () => {
    const watched = watchBucket(env.FILES);
    watched.isCompleteLost = true;
    const object = new AppendedObject(watched.bucket, { key: newKey() });
    await object.append(patternBytes(FILE_PART_BYTES + 1));
    expect(await object.complete()).toBe(FILE_PART_BYTES + 1);
    expect(await object.complete()).toBe(FILE_PART_BYTES + 1);
  });

  it("never replaces another object of its key", async () => {
    const key = newKey();
    await env.FILES.put(key, "another");
    const object = new AppendedObject(env.FILES, { key });
    await object.append(patternBytes(100));
    await expect(object.complete()).rejects.toThrow(/exists already/);
    expect((await env.FILES.head(key))?.size).toBe("another".length);
  });

  it("keeps the order of calls that are not awaited", async () => {
    const key = newKey();
    const bytes = patternBytes(FILE_PART_BYTES + 2 * PIECE_BYTES);
    const object = new AppendedObject(env.FILES, { key });
    const appended = [...pieces(bytes, 0)].map(({ piece }) => object.append(piece));
    expect(await object.complete()).toBe(bytes.length);
    expect((await Promise.all(appended)).filter((state) => state !== null)).toEqual([object.state]);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("of which R2 loses a part continues from its last state", async () => {
    const watched = watchBucket(env.FILES);
    watched.failing.add(2);
    const key = newKey();
    const bytes = patternBytes(2 * FILE_PART_BYTES + 10);
    const object = new AppendedObject(watched.bucket, { key });
    await object.append(bytes.subarray(0, FILE_PART_BYTES));
    await expect(object.append(bytes.subarray(FILE_PART_BYTES))).rejects.toThrow("part 2 was lost");
    await expect(object.append(new Uint8Array(1))).rejects.toThrow("part 2 was lost");
    await expect(object.complete()).rejects.toThrow("part 2 was lost");
    const again = new AppendedObject(watched.bucket, { key, state: stored(object.state) });
    await again.append(bytes.subarray(object.state.bytes));
    expect(await again.complete()).toBe(bytes.length);
    expect(areEqual(await contentOf(env.FILES, key), bytes)).toBe(true);
  });

  it("that is discarded leaves nothing, also after a restart", async () => {
    const watched = watchBucket(env.FILES);
    const key = newKey();
    await new AppendedObject(watched.bucket, { key }).discard();
    const object = new AppendedObject(watched.bucket, { key });
    const state = await object.append(patternBytes(FILE_PART_BYTES));
    if (state === null) throw new Error("a part is stored");
    await new AppendedObject(watched.bucket, { key, state: stored(state) }).discard();
    expect(await env.FILES.head(key)).toBeNull();
    await expect(watched.uploads[0]?.uploadPart(2, new Uint8Array(1))).rejects.toThrow(/does not exist/);
  });

  it("refuses a gap, and cannot be completed before the gap is filled", async () => {
    const state = { uploadId: "u", parts: [{ partNumber: 1, etag: "e" }], bytes: FILE_PART_BYTES };
    const at = (fromByte: number) => new AppendedObject(env.FILES, { key: "gap", state, fromByte });
    expect(() => at(FILE_PART_BYTES + 1)).toThrow(RangeError);
    expect(() => at(FILE_PART_BYTES)).not.toThrow();
    const short = at(FILE_PART_BYTES - 10);
    expect(await short.append(new Uint8Array(9))).toBeNull();
    await expect(short.complete()).rejects.toThrow(/before its stored bytes were appended/);
  });
});
