import { describe, expect, it } from "vitest";
import { JSON_BODY_DEPTH_MAX } from "../../../src/limits.ts";
import { drain, parseBody, readBytes, textOf } from "../../../src/contract/body.ts";

const post = (body: BodyInit | null, headers: Record<string, string> = { "content-type": "application/json" }) =>
  new Request("http://localhost/", { method: "POST", body, headers });

/** Room for a body of so many bytes, while the others leave `freeBytes`. */
const room = (bytesMax: number, freeBytes = Infinity) => ({ bytesMax, take: (total: number) => total <= freeBytes });

/** A body that counts how much of it was asked for. */
function endless(chunkBytes: number) {
  let pulled = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(chunkBytes).fill(0x20));
    },
    cancel() {
      cancelled = true;
    },
  });
  const request = new Request("http://localhost/", { method: "POST", body: stream, duplex: "half" } as RequestInit);
  return { request, chunks: () => pulled, cancelled: () => cancelled };
}

async function message(request: Request): Promise<string> {
  const read = await parseBody(request, room(1_000));
  if (read.ok || read.reason.reason !== "invalid_request") throw new Error(`unexpected: ${JSON.stringify(read)}`);
  return read.reason.message;
}

describe("a body that breaks off", () => {
  const broken = () =>
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
      pull: (controller) => controller.error(new Error("the connection was lost")),
    });
  const posted = (headers: Record<string, string>) =>
    new Request("http://localhost/", { method: "POST", body: broken(), headers, duplex: "half" } as RequestInit);

  it.each<[string, Record<string, string>]>([
    ["of a stated length", { "content-length": "7" }],
    ["of unknown length", {}],
    ["that is compressed", { "content-length": "7", "content-encoding": "gzip" }],
  ])("%s is refused as one", async (_, headers) => {
    const text = await message(posted({ "content-type": "application/json", ...headers }));
    expect(text).toContain("the body cannot be read to its end");
  });
});

describe("parseBody", () => {
  it("reads JSON, also under +json types, with parameters, or with no type at all", async () => {
    for (const type of [
      "application/json",
      "application/json; charset=utf-8",
      "Application/JSON",
      "application/ld+json",
    ]) {
      expect(await parseBody(post('{"a":[1,"é"]}', { "content-type": type }), room(100))).toEqual({
        ok: true,
        value: { a: [1, "é"] },
      });
    }
    const untyped = new Request("http://localhost/", { method: "POST", body: new TextEncoder().encode("7") });
    expect(untyped.headers.get("content-type")).toBeNull();
    expect(await parseBody(untyped, room(100))).toEqual({ ok: true, value: 7 });
  });

  it("refuses other types by name", async () => {
    expect(await parseBody(post("{}", { "content-type": "text/html" }), room(100))).toEqual({
      ok: false,
      reason: { reason: "unsupported_media_type", got: "text/html", expected: "application/json" },
    });
    const form = await parseBody(post("a=1", { "content-type": "application/x-www-form-urlencoded" }), room(100));
    expect(form).toMatchObject({ ok: false, reason: { reason: "unsupported_media_type" } });
  });

  it("says that a body is empty", async () => {
    for (const body of [null, "", " \n"]) expect(await message(post(body))).toContain("is empty");
  });

  it("accepts exactly the bytes allowed and no more", async () => {
    expect(await parseBody(post('"aé"'), room(5))).toEqual({ ok: true, value: "aé" });
    expect(await parseBody(post('"aé"'), room(4))).toEqual({
      ok: false,
      reason: { reason: "payload_too_large", what: "the body", bytesMax: 4, param: null },
    });
  });

  it("stops reading a body of unknown length at the bound", async () => {
    const body = endless(1_000);
    expect(await parseBody(body.request, room(10_000))).toMatchObject({
      ok: false,
      reason: { reason: "payload_too_large" },
    });
    expect(body.chunks()).toBeLessThan(20);
  });

  it("refuses a length stated above the bound without reading", async () => {
    const body = endless(1_000);
    const request = new Request(body.request, { headers: { "content-length": "99999" } });
    expect(await parseBody(request, room(10_000))).toMatchObject({
      ok: false,
      reason: { reason: "payload_too_large" },
    });
    expect(body.chunks()).toBeLessThan(8);
  });

  it("refuses bytes that are no UTF-8", async () => {
    expect(await message(post(new Uint8Array([0x22, 0xff, 0x22])))).toContain("not UTF-8");
  });

  it("drops a byte order mark", async () => {
    expect(await parseBody(post("\ufeff{}"), room(100))).toEqual({ ok: true, value: {} });
  });
});

describe("drain", () => {
  it("reads on after a refusal, to a bound of its own", async () => {
    const body = endless(1_000);
    await parseBody(body.request, room(10_000));
    const atRefusal = body.chunks();
    await drain(body.request, 30_000);
    expect(body.chunks()).toBeGreaterThanOrEqual(atRefusal + 29);
    expect(body.chunks()).toBeLessThan(atRefusal + 40);
    expect(body.cancelled()).toBe(true);
  });

  it("reads a body to its end that nobody has read", async () => {
    const request = post("x".repeat(1_000));
    await drain(request, 30_000);
    expect(request.bodyUsed).toBe(true);
  });

  it("leaves a body alone that was read whole", async () => {
    const request = post('"read"');
    expect(await parseBody(request, room(100))).toEqual({ ok: true, value: "read" });
    await expect(drain(request, 100)).resolves.toBeUndefined();
  });
});

describe("the message about a body that is not JSON", () => {
  const cases: [string, string][] = [
    ["{", "the text ends at line 1, column 2 (byte 1); expected a key in double quotes or }"],
    ['{"a":tru}', 'found "t" at line 1, column 6 (byte 5); expected a value'],
    ['{"a":1,}', 'found "}" at line 1, column 8 (byte 7); expected a key in double quotes'],
    ["[1,]", 'found "]" at line 1, column 4 (byte 3); expected a value'],
    ["[1 2]", 'found "2" at line 1, column 4 (byte 3); expected , or ]'],
    ['{\n  "a": 1\n  "b": 2\n}', 'found "\\"" at line 3, column 3 (byte 13); expected , or }'],
    ["{'a':1}", 'found "\'" at line 1, column 2 (byte 1); expected a key in double quotes or }'],
    ['{"a" 1}', 'found "1" at line 1, column 6 (byte 5); expected :'],
    ['"a', 'the text ends at line 1, column 3 (byte 2); expected a closing "'],
    ['"a\nb"', 'found "\\n" at line 1, column 3 (byte 2); expected control characters in texts to be escaped'],
    ['"\\x"', 'found "\\\\" at line 1, column 2 (byte 1); expected a valid escape after the backslash'],
    ['"\\u12g4"', 'found "\\\\" at line 1, column 2 (byte 1); expected a valid escape after the backslash'],
    ["{} x", 'found "x" at line 1, column 4 (byte 3); expected the end'],
    ["{} true", 'found "t" at line 1, column 4 (byte 3); expected the end'],
    ["[}", 'found "}" at line 1, column 2 (byte 1); expected a value or ]'],
    ["hello", 'found "h" at line 1, column 1 (byte 0); expected a value'],
    ["NaN", 'found "NaN" at line 1, column 1 (byte 0); expected a value'],
    ["01", 'found "1" at line 1, column 2 (byte 1); expected the end'],
    ["[[1,[2]]", "the text ends at line 1, column 9 (byte 8); expected , or ]"],
  ];

  it.each(cases)("places the fault of %j", async (body, expected) => {
    expect(await message(post(body))).toBe(`the body is not JSON: ${expected}`);
  });

  it("speaks of the depth where nesting would exhaust a stack", async () => {
    const read = await parseBody(post("[".repeat(2_000_000)), room(10_000_000));
    const message = `the body opens level ${JSON_BODY_DEPTH_MAX + 1} of nesting at byte ${JSON_BODY_DEPTH_MAX}; expected at most ${JSON_BODY_DEPTH_MAX}`;
    expect(read).toEqual({ ok: false, reason: { reason: "invalid_request", message, param: null } });
  });
});

describe("readBytes and textOf", () => {
  it("give the text of any type under the same bound", async () => {
    const bytes = await readBytes(post("héllo", { "content-type": "text/plain" }), room(6));
    if (!bytes.ok) throw new Error("six bytes were refused");
    expect(textOf(bytes.value)).toEqual({ ok: true, value: "héllo" });
    expect(await readBytes(post("héllo", { "content-type": "text/plain" }), room(5))).toMatchObject({ ok: false });
  });

  it("refuse bytes that are no UTF-8", () => {
    expect(textOf(new Uint8Array([0xff]))).toMatchObject({ ok: false, reason: { reason: "invalid_request" } });
  });
});
