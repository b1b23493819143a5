/** The form reader against forms written by hand and forms made at random, cut into chunks anywhere. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FormReader } from "../../../src/files/multipart.ts";
import { streamSource } from "../../../src/files/source.ts";
import {
  FORM_FIELD_BYTES_MAX,
  FORM_HEADER_BYTES_MAX,
  FORM_PARTS_MAX,
  FORM_REST_BYTES_MAX,
} from "../../../src/limits.ts";
import { bytesOf, findAll, readAll, sourceOf } from "../../support/forms.ts";
import type { Found } from "../../support/forms.ts";

const BOUNDARY = "----bound-ary";

type Sent = { disposition: string; type?: string; content: string | Uint8Array };

function formOf(parts: readonly Sent[], boundary = BOUNDARY): Uint8Array<ArrayBuffer> {
  return bytesOf(
    ...parts.flatMap(({ disposition, type, content }) => [
      `--${boundary}\r\nContent-Disposition: ${disposition}\r\n`,
      type === undefined ? "\r\n" : `Content-Type: ${type}\r\n\r\n`,
      content,
      "\r\n",
    ]),
    `--${boundary}--\r\n`,
  );
}

function read(form: Uint8Array, chunkLengths?: readonly number[], boundary = BOUNDARY): Promise<Found[]> {
  return findAll(new FormReader(sourceOf(form, chunkLengths), { boundary, files: ["file"] }));
}

const fileOf = (content: string | Uint8Array): Sent => ({
  disposition: 'form-data; name="file"; filename="a.jsonl"',
  type: "application/octet-stream",
  content,
});
const fieldOf = (name: string, content: string): Sent => ({ disposition: `form-data; name="${name}"`, content });
const foundFile = (content: string | Uint8Array) => ({
  file: "file",
  filename: "a.jsonl",
  contentType: "application/octet-stream",
  bytes: bytesOf(content),
});

describe("a form", () => {
  it("is the same for every border of two chunks", async () => {
    const content = `{"a":1}\r\n\r\n--${BOUNDARY.slice(0, -1)}\r\r\n--\r\n`;
    const form = formOf([fileOf(content), fieldOf("purpose", "batch"), fieldOf("expires_after[seconds]", "3600")]);
    const whole = [
      foundFile(content),
      { field: "purpose", value: "batch" },
      { field: "expires_after[seconds]", value: "3600" },
    ];
    for (let at = 0; at <= form.length; at += 1) expect(await read(form, [at, form.length])).toEqual(whole);
  });

  it("is the same for all chunk borders, for any content without the delimiter", async () => {
    // Contents of the characters of delimiters, so that beginnings of one are everywhere.
    const delimiterLike = fc
      .array(fc.constantFrom("\r", "\n", "\r\n", "-", "--", "\r\n--", `\r\n--${BOUNDARY.slice(0, 6)}`, "x", "é"))
      .map((pieces) => pieces.join(""));
    const content = fc.oneof(
      delimiterLike.map((text) => bytesOf(text)),
      fc.uint8Array({ maxLength: 300 }),
    );
    const part = fc.oneof(
      content.map((bytes) => ({ sent: fileOf(bytes), found: foundFile(bytes) })),
      fc.tuple(fc.stringMatching(/^[a-z[\]]{1,9}$/), delimiterLike).map(([name, value]) => ({
        sent: fieldOf(`f${name}`, value),
        found: { field: `f${name}`, value },
      })),
    );
    const chunks = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 5 }), chunks, async (parts, chunkLengths) => {
        const form = formOf(parts.map(({ sent }) => sent));
        expect(await read(form, chunkLengths)).toEqual(parts.map(({ found }) => found));
      }),
      { numRuns: 300 },
    );
  });

  it("is a fault wherever it is cut off, and never ends a file or a form that is not whole", async () => {
    const form = formOf([fileOf('{"a":1}\n'), fieldOf("purpose", "batch")]);
    const closed = form.length - "\r\n".length;
    for (let length = 0; length < form.length; length += 1) {
      const last = (await read(form.subarray(0, length), [7])).at(-1);
      if (length < closed) {
        expect(last).toMatchObject({ fault: { reason: "invalid_request", message: expect.stringMatching(/cut off/) } });
      } else expect(last).toEqual({ field: "purpose", value: "batch" });
    }
  });

  it("may have text before its first boundary and after its last one", async () => {
    const form = bytesOf("This is a form.\r\n", formOf([fileOf("x")]), "That was a form.\r\n--", BOUNDARY);
    expect(await read(form, [3])).toEqual([foundFile("x")]);
  });

  it("may have white space after a boundary and folded header lines", async () => {
    const header = 'content-disposition:form-data;\r\n\tname=file ;filename="a.jsonl"\r\nContent-Type: a/b\r\nX: y';
    const form = bytesOf(`--${BOUNDARY} \t\r\n${header}\r\n\r\nx\r\n--${BOUNDARY}--`);
    expect(await read(form)).toEqual([{ file: "file", filename: "a.jsonl", contentType: "a/b", bytes: bytesOf("x") }]);
  });

  it("returns a file's bytes before the file has ended", async () => {
    const form = formOf([fileOf(new Uint8Array(200_000)), fieldOf("purpose", "batch")]);
    let sent = 0;
    const source = sourceOf(form, [1_000]);
    const counted = {
      async read() {
        const read = await source.read();
        if (read.kind === "bytes") sent += read.bytes.length;
        return read;
      },
    };
    const part = await new FormReader(counted, { boundary: BOUNDARY, files: ["file"] }).next();
    if (part.kind !== "file") throw new Error("the first part is a file");
    let received = 0;
    for (let read = await part.body.read(); read.kind === "bytes"; read = await part.body.read()) {
      received += read.bytes.length;
      expect(sent - received).toBeLessThan(1_200);
    }
    expect(received).toBe(200_000);
  });

  it("continues after a file that was not read", async () => {
    const form = formOf([fileOf("skipped"), fieldOf("purpose", "batch")]);
    const reader = new FormReader(sourceOf(form, [5]), { boundary: BOUNDARY, files: ["file"] });
    const file = await reader.next();
    expect(await reader.next()).toEqual({ kind: "field", name: "purpose", value: "batch" });
    if (file.kind !== "file") throw new Error("the first part is a file");
    await expect(readAll(file.body)).rejects.toThrow(/after next\(\) was called/);
    expect(await reader.next()).toEqual({ kind: "end" });
    expect(await reader.next()).toEqual({ kind: "end" });
  });

  it("returns the fault of its source", async () => {
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(formOf([fileOf("x")]).subarray(0, 120)),
      pull: (controller) => controller.error(new Error("gone")),
    });
    const reader = new FormReader(streamSource(broken, "the client left"), { boundary: BOUNDARY, files: ["file"] });
    expect(await findAll(reader)).toEqual([
      { fault: { reason: "invalid_request", message: "the client left", param: null } },
    ]);
  });
});

describe("a part's header", () => {
  it.each([
    ["a quoted name", 'filename="a b.jsonl"', "a b.jsonl"],
    ["a name without quotes", "filename=a.jsonl", "a.jsonl"],
    ["no name", "x=y", null],
    ["an empty name", 'filename=""', ""],
    ["letters of any script", 'filename="日本 é.jsonl"', "日本 é.jsonl"],
    ["a quote and a backslash, escaped", 'filename="a\\"b\\\\c"', 'a"b\\c'],
    ["a quote as browsers send it", 'filename="a%22b"', 'a"b'],
    ["a path of Windows", 'filename="C:\\dir\\a.jsonl"', "C:\\dir\\a.jsonl"],
    ["a semicolon", 'filename="a;name=b"', "a;name=b"],
    ["an extended name, which wins", "filename=\"x\"; filename*=UTF-8'en'na%C3%AFve.txt", "naïve.txt"],
    ["an extended name alone", "filename*=utf-8''a%20b", "a b"],
    ["an extended name that is broken", "filename=\"x\"; filename*=UTF-8''%zz", "x"],
    ["an extended name in another charset", "filename=\"x\"; filename*=latin1''%e9", "x"],
  ])("may give %s", async (_, parameter, filename) => {
    const form = formOf([{ disposition: `form-data; name="file"; ${parameter}`, content: "x" }]);
    expect(await read(form)).toEqual([{ file: "file", filename, contentType: null, bytes: bytesOf("x") }]);
  });

  it.each([
    ["is missing", "\r\n"],
    ["has no disposition", "Content-Type: text/plain\r\n\r\n"],
    ["is an attachment's", 'Content-Disposition: attachment; name="file"\r\n\r\n'],
    ["gives no name", "Content-Disposition: form-data\r\n\r\n"],
  ])("is refused when it %s", async (_, header) => {
    const found = await read(bytesOf(`--${BOUNDARY}\r\n${header}x\r\n--${BOUNDARY}--\r\n`), [4]);
    expect(found).toEqual([
      { fault: { reason: "invalid_request", message: expect.stringMatching(/part 1 is not the field/), param: null } },
    ]);
  });

  it("is refused if a boundary is followed by other characters", async () => {
    const found = await read(bytesOf(`--${BOUNDARY}x\r\nContent-Disposition: form-data; name="a"\r\n\r\nx`));
    expect(found).toMatchObject([{ fault: { reason: "invalid_request" } }]);
  });
});

describe("bounds of a form", () => {
  const refused = (message: RegExp) => ({
    fault: { reason: "invalid_request", message: expect.stringMatching(message) },
  });

  it("accepts parts up to the limit and no more", async () => {
    const parts = Array.from({ length: FORM_PARTS_MAX }, (_, index) => fieldOf("a", String(index)));
    expect(await read(formOf(parts))).toHaveLength(FORM_PARTS_MAX);
    expect((await read(formOf([...parts, fieldOf("a", "x")]))).at(-1)).toMatchObject(refused(/more than 32 parts/));
  });

  it("accepts fields up to their limit, and files of any length", async () => {
    const value = "é".repeat(FORM_FIELD_BYTES_MAX / 2);
    expect(await read(formOf([fieldOf("purpose", value)]), [1_001])).toEqual([{ field: "purpose", value }]);
    expect(await read(formOf([fieldOf("purpose", `${value}x`)]))).toEqual([
      {
        fault: {
          reason: "payload_too_large",
          what: 'the form field "purpose"',
          bytesMax: FORM_FIELD_BYTES_MAX,
          param: "purpose",
        },
      },
    ]);
    const large = new Uint8Array(FORM_FIELD_BYTES_MAX * 4).fill(45);
    expect(await read(formOf([fileOf(large)]))).toEqual([foundFile(large)]);
  });

  it("accepts headers up to their limit", async () => {
    const start = 'Content-Disposition: form-data; name="a"; x="';
    // The limit counts from the boundary's own line break to the header's last letter.
    const fill = "y".repeat(FORM_HEADER_BYTES_MAX - start.length - '"'.length - "\r\n".length);
    const formWith = (filling: string) => bytesOf(`--${BOUNDARY}\r\n${start}${filling}"\r\n\r\nx\r\n--${BOUNDARY}--`);
    expect(await read(formWith(fill), [4_096])).toEqual([{ field: "a", value: "x" }]);
    expect(await read(formWith(`${fill}y`))).toMatchObject([
      refused(/header of the form's part 1 has over 16384 bytes/),
    ]);
    expect(await read(bytesOf(`--${BOUNDARY}\r\n`, "y".repeat(99_999)), [512])).toMatchObject([refused(/header/)]);
  });

  it("is searched for its first boundary up to a bound", async () => {
    const form = formOf([fileOf("x")]);
    // The reader counts the line break that it puts before the form, for the first boundary begins a line of its own.
    const rest = (length: number) => bytesOf("x".repeat(length - "\r\n".length), "\r\n", form);
    expect(await read(rest(FORM_REST_BYTES_MAX))).toEqual([foundFile("x")]);
    expect(await read(rest(FORM_REST_BYTES_MAX + 1))).toMatchObject([refused(/does not begin/)]);
    expect(await read(form, undefined, "another")).toMatchObject([refused(/cut off/)]);
  });

  it("does not wait for an epilogue without end", async () => {
    let pieces = 0;
    const form = formOf([fileOf("x")]);
    const endless = {
      read: async () => ({ kind: "bytes" as const, bytes: pieces++ === 0 ? form : new Uint8Array(1_024) }),
    };
    expect(await findAll(new FormReader(endless, { boundary: BOUNDARY, files: ["file"] }))).toEqual([foundFile("x")]);
    expect(pieces).toBeLessThanOrEqual(FORM_REST_BYTES_MAX / 1_024 + 2);
  });
});
