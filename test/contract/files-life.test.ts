/** `/v1/files` from outside: what is uploaded is stored, listed, read in whole and in part, and goes when it should. */
import { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBatchPlace, type BatchPlace, type BatchRun } from "./batch-place.ts";
import { errorOf } from "./world.ts";

let place: BatchPlace;
let run: BatchRun;
beforeAll(async () => {
  place = await startBatchPlace();
  run = await place.openRun();
});
afterAll(() => place.stop());

type Part = { name: string; value: string | Uint8Array; header?: string };
const FORM = { "content-type": "multipart/form-data; boundary=cut" };

/** A form as bytes, its parts in the order given. */
function formOf(parts: readonly Part[], end = "--cut--\r\n"): Buffer {
  const pieces = parts.flatMap(({ name, value, header = "" }) => [
    `--cut\r\ncontent-disposition: form-data; name="${name}"${header}\r\n\r\n`,
    value,
    "\r\n",
  ]);
  return Buffer.concat(
    [...pieces, end].map((piece) => (typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece))),
  );
}

const post = (body: Buffer, headers: Record<string, string> = FORM) =>
  run.send("/v1/files", { method: "POST", body, headers });
const userData = { name: "purpose", value: "user_data" };
const upload = async (text: string | Uint8Array, filename = "x.txt", own = run) =>
  await own.openai.files.create({ file: await toFile(Buffer.from(text), filename), purpose: "user_data" });

describe("an upload", () => {
  it("may have its fields in any order, no content-length and no file name", async () => {
    const file = { name: "file", value: "content" };
    for (const parts of [
      [file, userData],
      [userData, file],
    ]) {
      const stream = new ReadableStream({
        start(controller) {
          for (const byte of formOf(parts)) controller.enqueue(new Uint8Array([byte]));
          controller.close();
        },
      });
      const response = await place.gateway().fetch("/v1/files", {
        method: "POST",
        body: stream,
        headers: FORM,
        token: run.token,
        duplex: "half",
      });
      expect([response.status, await response.json()]).toEqual([
        200,
        expect.objectContaining({
          object: "file",
          bytes: 7,
          purpose: "user_data",
          filename: "upload",
          expires_at: null,
        }),
      ]);
    }
  });

  it("stores every byte unchanged, also of files of several parts", async () => {
    const bytes = new Uint8Array(12_000_000);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = (at * 31) ^ (at >>> 8);
    const { id, bytes: size } = await upload(bytes, "large.bin");
    expect(size).toBe(bytes.length);
    const read = Buffer.from(await (await run.openai.files.content(id)).arrayBuffer());
    expect(read.equals(bytes)).toBe(true);
  });

  it("sets when the file expires, within bounds", async () => {
    const file = { name: "file", value: "{}" };
    const after = (seconds: string, anchor = "created_at") => [
      file,
      { name: "purpose", value: "batch" },
      { name: "expires_after[anchor]", value: anchor },
      { name: "expires_after[seconds]", value: seconds },
    ];
    for (const seconds of [3_600, 2_592_000]) {
      const made = await run.openai.files.create({
        file: await toFile(Buffer.from("{}")),
        purpose: "user_data",
        expires_after: { anchor: "created_at", seconds },
      });
      expect((made.expires_at ?? 0) - made.created_at).toBe(seconds);
    }
    for (const seconds of ["3599", "2592001", "1.5", ""]) {
      const answer = await post(formOf(after(seconds)));
      expect([answer.status, answer.json]).toEqual([
        400,
        { error: expect.objectContaining({ param: "expires_after.seconds" }) },
      ]);
    }
    expect((await post(formOf(after("3600", "now")))).json).toMatchObject({ error: { param: "expires_after.anchor" } });
  });

  it("is refused if a field is missing; the error names it, and nothing is stored", async () => {
    const file = { name: "file", value: "content" };
    const before = (await run.openai.files.list()).data.length;
    const missing = (param: string) => ({ error: { param, code: "missing_required_parameter" } });
    const cases: [Buffer, object][] = [
      [formOf([file]), missing("purpose")],
      [formOf([userData]), missing("file")],
      [formOf([file, { name: "purpose", value: "nonsense" }]), { error: { param: "purpose", code: "invalid_value" } }],
      [
        formOf([file, { name: "purpose", value: "batch_output" }]),
        { error: { param: "purpose", code: "invalid_value" } },
      ],
      [formOf([file, userData, file]), { error: { param: "file" } }],
      [formOf([file, userData], ""), { error: { message: expect.stringContaining("cut off") } }],
      [Buffer.from("no form"), { error: { message: expect.stringContaining("boundary") } }],
    ];
    for (const [body, error] of cases) {
      const answer = await post(body);
      expect([answer.status, answer.json, answer.headers.get("x-should-retry")]).toEqual([
        400,
        expect.objectContaining({}),
        "false",
      ]);
      expect(answer.json).toMatchObject(error);
    }
    const json = await run.send("/v1/files", { json: { purpose: "batch" } });
    expect([json.status, errorOf(json).code]).toEqual([415, "unsupported_media_type"]);
    expect((await run.openai.files.list()).data).toHaveLength(before);
  });
});

describe("the content of a file", () => {
  const at = (id: string) => `/v1/files/${id}/content`;

  it("can be read by range, as a resumed download requests it", async () => {
    const { id } = await upload("0123456789");
    const whole = await run.send(at(id));
    expect([whole.status, whole.text, whole.headers.get("accept-ranges")]).toEqual([200, "0123456789", "bytes"]);
    const etag = whole.headers.get("etag") ?? "";
    const ranges: [Record<string, string>, number, string, string | null][] = [
      [{ range: "bytes=2-4" }, 206, "234", "bytes 2-4/10"],
      [{ range: "bytes=7-" }, 206, "789", "bytes 7-9/10"],
      [{ range: "bytes=-2" }, 206, "89", "bytes 8-9/10"],
      [{ range: "bytes=2-4", "if-range": etag }, 206, "234", "bytes 2-4/10"],
      [{ range: "bytes=2-4", "if-range": '"another"' }, 200, "0123456789", null],
      [{ range: "pages=1-2" }, 200, "0123456789", null],
    ];
    for (const [headers, status, text, contentRange] of ranges) {
      const answer = await run.send(at(id), { headers });
      expect([answer.status, answer.text, answer.headers.get("content-range")]).toEqual([status, text, contentRange]);
    }
    const beyond = await run.send(at(id), { headers: { range: "bytes=10-" } });
    expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, "bytes */10"]);
    expect(beyond.json).toMatchObject({ error: { param: "range" } });
  });

  it("is described by HEAD, with its length and name", async () => {
    const { id } = await upload("0123456789", "a naïve name.txt");
    const head = await run.send(at(id), { method: "HEAD" });
    expect([head.status, head.text, head.headers.get("content-length")]).toEqual([200, "", "10"]);
    expect(head.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a%20na%C3%AFve%20name.txt");
  });

  it("may be empty", async () => {
    const { id } = await upload("");
    expect(await run.openai.files.retrieve(id)).toMatchObject({ bytes: 0 });
    const answer = await run.send(at(id));
    expect([answer.status, answer.text]).toEqual([200, ""]);
  });
});

describe("the list of files", () => {
  it("can be filtered by purpose, ordered, limited and paged by cursor", async () => {
    const own = await place.openRun();
    const made: string[] = [];
    for (const text of ["a", "b", "c", "d"]) made.push((await upload(text, `${text}.txt`, own)).id);
    const other = await own.openai.files.create({ file: await toFile(Buffer.from("{}")), purpose: "batch" });
    const ids = async (query: string) => {
      const { json } = await own.send(`/v1/files?${query}`);
      return json;
    };
    const page = (data: string[], has_more: boolean) => ({
      object: "list",
      data: data.map((id) => expect.objectContaining({ id })),
      first_id: data[0] ?? null,
      last_id: data.at(-1) ?? null,
      has_more,
    });
    expect(await ids("")).toEqual(page([other.id, ...made.toReversed()], false));
    expect(await ids("order=asc&limit=2")).toEqual(page(made.slice(0, 2), true));
    expect(await ids(`order=asc&limit=3&after=${made[1]}`)).toEqual(page([...made.slice(2), other.id], false));
    expect(await ids("purpose=user_data&limit=4")).toEqual(page(made.toReversed(), false));
    expect(await ids("purpose=vision")).toEqual(page([], false));
    // Of what was deleted nothing follows: its place in the list is gone with it.
    await own.openai.files.delete(made[3] ?? "");
    expect(await ids("limit=1&order=asc")).toEqual(page(made.slice(0, 1), true));
    for (const query of ["limit=0", "limit=10001", "limit=x", "order=up", "after=file-nowhere"]) {
      expect([query, (await own.send(`/v1/files?${query}`)).status]).toEqual([query, 400]);
    }
  });
});

describe("a deleted file", () => {
  it("is not found by any route, and cannot be deleted twice", async () => {
    const { id } = await upload("x");
    expect(await run.openai.files.delete(id)).toEqual({ id, object: "file", deleted: true });
    for (const [path, method] of [
      ["", "GET"],
      ["/content", "GET"],
      ["/content", "HEAD"],
      ["", "DELETE"],
    ] as const) {
      const answer = await run.send(`/v1/files/${id}${path}`, { method });
      expect([method, answer.status]).toEqual([method, 404]);
      if (method !== "HEAD") expect(answer.json).toMatchObject({ error: { message: `No such File object: ${id}` } });
    }
  });
});

it("files survive a kill of the gateway", { tags: ["slow"] }, async () => {
  const { id } = await upload("kept");
  await place.restart();
  expect(await (await run.openai.files.content(id)).text()).toBe("kept");
});
