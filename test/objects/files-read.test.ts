/** Objects read out of a simulated R2, in the Workers runtime: as answers, and page by page. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { answerContent, pageSource } from "../../src/files/r2-read.ts";
import type { ContentRequest } from "../../src/files/r2-read.ts";
import { bytesOf, readAll } from "../support/forms.ts";
import { areEqual, patternBytes, watchBucket } from "../support/watched-bucket.ts";

const TEN = "0123456789";

async function answer(key: string, request: Partial<ContentRequest>) {
  const content = await answerContent(env.FILES, key, { method: "GET", range: null, ifRange: null, ...request });
  if (content.kind !== "content") return content;
  const text = content.body === null ? null : await new Response(content.body).text();
  return { status: content.status, headers: content.headers, text };
}

async function put(key: string, content: string | Uint8Array = TEN) {
  return await env.FILES.put(key, content, { httpMetadata: { contentType: "application/jsonl" } });
}

describe("the answer with an object's content", () => {
  it("is the whole object without a range", async () => {
    const object = await put("whole");
    expect(await answer("whole", {})).toEqual({
      status: 200,
      headers: {
        "content-type": "application/jsonl",
        "content-length": "10",
        "accept-ranges": "bytes",
        etag: object.httpEtag,
        "last-modified": object.uploaded.toUTCString(),
      },
      text: TEN,
    });
    expect(await answer("whole", { range: "bytes=0-1,3-4" })).toMatchObject({ status: 200, text: TEN });
  });

  it.each([
    ["bytes=2-4", "bytes 2-4/10", "234"],
    ["bytes=7-", "bytes 7-9/10", "789"],
    ["bytes=-2", "bytes 8-9/10", "89"],
    ["bytes=0-99", "bytes 0-9/10", TEN],
  ])("is a part of it for %s", async (range, contentRange, text) => {
    await put("ranged");
    const headers = { "content-range": contentRange, "content-length": String(text.length), "accept-ranges": "bytes" };
    expect(await answer("ranged", { range })).toMatchObject({ status: 206, headers, text });
  });

  it("is only the size if the range begins behind the end", async () => {
    await put("short");
    const headers = { "content-range": "bytes */10", "accept-ranges": "bytes" };
    expect(await answer("short", { range: "bytes=10-" })).toEqual({ kind: "unsatisfiable", headers });
  });

  it("has no body for HEAD, whatever the range", async () => {
    await put("head");
    const headers = { "content-length": "10", "content-type": "application/jsonl" };
    expect(await answer("head", { method: "HEAD", range: "bytes=2-4" })).toMatchObject({
      status: 200,
      headers,
      text: null,
    });
  });

  it("is a range only if If-Range matches the object", async () => {
    const { httpEtag } = await put("conditional");
    const range = "bytes=2-4";
    expect(await answer("conditional", { range, ifRange: httpEtag })).toMatchObject({ status: 206, text: "234" });
    expect(await answer("conditional", { range, ifRange: '"other"' })).toMatchObject({ status: 200, text: TEN });
  });

  it("can be empty", async () => {
    await put("empty", "");
    expect(await answer("empty", {})).toMatchObject({ status: 200, headers: { "content-length": "0" }, text: "" });
    expect(await answer("empty", { range: "bytes=0-" })).toMatchObject({ kind: "unsatisfiable" });
  });

  it("is a 404 if the object is missing", async () => {
    for (const request of [{}, { method: "HEAD" }, { range: "bytes=0-" }]) {
      expect(await answer("nothing here", request)).toEqual({ kind: "missing" });
    }
  });
});

describe("pages of an object", () => {
  it.each([0, 1, 99_999, 100_000, 250_000, 299_999, 300_000])("begin at byte %i and are whole", async (offset) => {
    const bytes = patternBytes(300_000);
    await put("pages", bytes);
    const watched = watchBucket(env.FILES);
    const pages = pageSource(watched.bucket, { key: "pages", sizeBytes: bytes.length, offset, pageBytes: 100_000 });
    const read = await readAll(pages);
    expect(read.fault).toBeNull();
    expect(areEqual(read.bytes, bytes.subarray(offset))).toBe(true);
    expect(watched.calls).toEqual(Array(Math.ceil((bytes.length - offset) / 100_000)).fill("get"));
  });

  it("are read on demand, not in advance", async () => {
    await put("lazy", TEN);
    const watched = watchBucket(env.FILES);
    const pages = pageSource(watched.bucket, { key: "lazy", sizeBytes: 10, offset: 0, pageBytes: 4 });
    expect(watched.calls).toEqual([]);
    expect(await pages.read()).toEqual({ kind: "bytes", bytes: bytesOf("0123") });
    expect(watched.calls).toEqual(["get"]);
  });

  it("end with not_found if the object was deleted", async () => {
    const pages = pageSource(env.FILES, { key: "gone", sizeBytes: 10, offset: 0 });
    expect((await readAll(pages)).fault).toEqual({ reason: "not_found", what: "the file's content" });
  });

  it("end with an exception if the object is shorter than its recorded size", async () => {
    await put("shorter", TEN);
    const pages = pageSource(env.FILES, { key: "shorter", sizeBytes: 12, offset: 0, pageBytes: 12 });
    await expect(pages.read()).rejects.toThrow(/10 of 12 bytes/);
  });
});
